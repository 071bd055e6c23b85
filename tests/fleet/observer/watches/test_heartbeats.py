"""Of a node that only lives no row is made; whatever else it says is written, in whatever order it comes."""

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fleet.models import Node
from fleet.observer.mirror import memory
from fleet.observer.mirror.kinds import KINDS
from fleet.observer.watches.deltas import Changed
from kube.client.decoder import Unread
from tests.fleet.documents import a_node_seen
from tests.fleet.observer.conftest import Mirror

UID = "uid-of-gpu-001"
LATER = "2026-11-21T12:00:00Z"


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of nodes that a row was made of."""
    names: list[str] = []
    nodes = KINDS["nodes"]
    monkeypatch.setitem(
        KINDS, "nodes", replace(nodes, row=lambda seen, scope: [names.append(seen.name), nodes.row(seen, scope)][1])
    )
    return names


def test_no_row_is_made_of_a_heartbeat(mirror: Mirror, made: list[str]):
    mirror.list("nodes", [a_node_seen()])
    mirror.see("nodes", a_node_seen(version="8"))
    after_one = len(made)

    mirror.see("nodes", a_node_seen(version="9", heartbeat=LATER))

    assert len(made) == after_one
    assert not mirror.deltas.size
    assert mirror.deltas.cursors["nodes"].resource_version == str(mirror.version)


def test_what_comes_back_to_what_it_was_is_written(mirror: Mirror):
    mirror.list("nodes", [a_node_seen()])
    mirror.see("nodes", a_node_seen(version="8"))
    mirror.see("nodes", a_node_seen(version="9", ready="False"))
    mirror.flush()
    was = Node.objects.get().is_ready

    mirror.see("nodes", a_node_seen(version="10"))
    mirror.flush()

    assert (was, Node.objects.get().is_ready) == (False, True)


def test_what_was_heard_and_not_written_has_telemetry_again(mirror: Mirror):
    mirror.list("nodes", [a_node_seen()])
    mirror.see("nodes", a_node_seen(version="8", ready="False"))
    mirror.deltas.pending["nodes"].clear()  # as a transaction that failed leaves it

    mirror.see("nodes", a_node_seen(version="9", ready="False"))
    mirror.flush()

    assert Node.objects.get().is_ready is False


def test_a_node_that_can_be_read_again_is_no_longer_one_that_cannot(mirror: Mirror):
    mirror.list("nodes", [a_node_seen()])
    mirror.see("nodes", a_node_seen(version="8"))
    mirror.record_update(
        Changed("nodes", None, is_gone=False, resource_version="9", unread=Unread(UID, "gpu-001", "labels"))
    )

    mirror.see("nodes", a_node_seen(version="10"))
    mirror.flush()

    assert mirror.bookmark("nodes").unread == {}


def test_what_could_be_read_before_it_could_not_is_written_and_is_not_how_it_is(mirror: Mirror):
    """Both came before a flush; then it is again as it was before."""
    mirror.list("nodes", [a_node_seen()])
    mirror.see("nodes", a_node_seen(version="8", ready="False"))
    mirror.record_update(
        Changed("nodes", None, is_gone=False, resource_version="9", unread=Unread(UID, "gpu-001", "labels"))
    )
    mirror.flush()
    unread = mirror.bookmark("nodes").unread

    mirror.see("nodes", a_node_seen(version="10", ready="False"))
    mirror.flush()

    assert list(unread) == [UID]
    assert (Node.objects.get().is_ready, mirror.bookmark("nodes").unread) == (False, {})


def test_nodes_that_are_gone_are_not_remembered(mirror: Mirror):
    mirror.list("nodes", [a_node_seen(), a_node_seen("gpu-002")])
    for name in ("gpu-001", "gpu-002"):
        mirror.see("nodes", a_node_seen(name, version="8"))
    mirror.see("nodes", a_node_seen("gpu-002"), is_gone=True)
    mirror.flush()

    memory.keep_memory(mirror.cluster.pk, mirror.deltas.memory)

    assert set(memory.recall(mirror.cluster.pk, epoch=2).likenesses) == {UID}


EVENTS = st.lists(
    st.sampled_from(["ready", "not ready", "seven", "gone", "unreadable", "flush", "another worker"]), max_size=12
)


@given(EVENTS)
@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
def test_the_row_is_as_the_node_last_said(mirror: Mirror, events: list[str]):
    says = {"ready": {}, "not ready": {"ready": "False"}, "seven": {"allocatable": 7}}
    mirror.list("nodes", [])
    last: dict | None = None
    for event in events:
        if event in says:
            last = says[event]
            mirror.see("nodes", a_node_seen(version=str(mirror.version), **last))
        elif event == "gone":
            last = None
            mirror.see("nodes", a_node_seen(), is_gone=True)
        elif event == "unreadable":
            unread = Unread(UID, "gpu-001", "labels")
            mirror.record_update(
                Changed("nodes", None, is_gone=False, resource_version=str(mirror.version), unread=unread)
            )
        else:
            mirror.flush()
            if event == "another worker":
                mirror.begin()
    mirror.flush()

    found = list(Node.objects.values_list("is_ready", "gpu_allocatable"))
    assert found == ([] if last is None else [(last.get("ready") != "False", last.get("allocatable", 8))])
