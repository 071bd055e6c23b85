"""What a cluster says of our rights when it is taken up, with the manifest in place and with parts of it missing."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from fleet.observer.cluster_registration import CannotAdd, ask
from tests.api_server import ApiServer, an_api_server
from tests.fleet.rights import OURS, grant


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[ApiServer]:
    with an_api_server(tmp_path, "--authorization", "rbac") as server:
        yield server


def test_with_the_manifest_nothing_is_missing(guarded):
    grant(guarded)

    assert [note for note in ask(guarded.kubeconfig, OURS).notes if "may not" in note] == []


def test_rights_that_only_pages_need_are_named_and_hinder_nothing(guarded):
    grant(guarded, "events", "jobs")

    (note,) = [note for note in ask(guarded.kubeconfig, OURS).notes if "may not" in note]

    assert note.startswith("Quarterdeck may not list jobs.batch, events, so pages cannot show them.")


def test_rights_without_which_nothing_can_be_seen_are_asked_for(guarded):
    grant(guarded, "pods")

    with pytest.raises(CannotAdd, match="get, list, watch on pods"):
        ask(guarded.kubeconfig, OURS)
