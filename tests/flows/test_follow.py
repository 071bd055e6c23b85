"""A rollout that somebody else drives by writing the ClusterPolicy, where Quarterdeck may only follow (Z34)."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest

from demo.kept import DATABASE
from demo.stack import CLUSTER, PASSWORD
from demo.visitor import Visitor, wait_until
from tests.flows.cluster import HOLD, PATIENCE_S, POLICY, UPGRADE_STATE, ByPolicy
from tests.flows.conftest import FLEET
from tests.flows.plans import BAD, VERSIONS
from tests.flows.proxy import CONTEXT
from tests.flows.recorded import RecordedStack

pytestmark = [
    pytest.mark.promote,
    pytest.mark.nightly,
    pytest.mark.skipif(
        "QUARTERDECK_TEST_KUBECONFIG" in os.environ, reason="the API server that is given has NVIDIADrivers"
    ),
]
Shown = dict[str, Any]


@pytest.fixture(scope="module")
def followed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RecordedStack]:
    fleet = replace(FLEET, name="cluster-policy", nodes=6)
    with RecordedStack(tmp_path_factory.mktemp("follow"), fleet) as running:
        kubeconfig = str(running.proxy.kubeconfig)
        running.manage(["add_cluster", CLUSTER, "--kubeconfig", kubeconfig, "--context", CONTEXT, "--mode", "follow"])
        wait_until(lambda: looked_at(running), what="a first look at the ClusterPolicy", timeout_s=PATIENCE_S)
        yield running


def looked_at(running: RecordedStack) -> bool:
    """Whether what each node is like is kept in mind: nothing of that is shown before a rollout begins."""
    with closing(sqlite3.connect(running.folder / DATABASE)) as rows:
        return rows.execute("SELECT count(*) FROM rollouts_externalrolloutnode").fetchone() == (6,)


@pytest.fixture(scope="module")
def in_it(followed: RecordedStack) -> Iterator[ByPolicy]:
    cluster = ByPolicy(followed.kubeconfig, followed.fleet.context)
    yield cluster
    cluster.close()


@pytest.fixture
def viewer(followed: RecordedStack, in_it: ByPolicy) -> Iterator[Visitor]:
    """And all that was asked of the API server meanwhile has been a read."""
    since = followed.proxy.count
    with Visitor(followed.url, "viewer") as visitor:
        yield visitor.sign_in(PASSWORD)
    in_it.settle()
    assert [asked for asked in followed.proxy.requests(since) if asked.is_write] == []
    assert in_it.marked() == set()
    assert not followed.bugs()


def newest(viewer: Visitor, to: str) -> Shown:
    """The external rollout to a version; nothing yet: {}."""
    return next((row for row in viewer.all("/api/v1/external-rollouts") if row["to_version"] == to), {})


def until(viewer: Visitor, to: str, holds: Any, *, what: str) -> Shown:
    """The rollout as it is once that holds of it."""

    def look() -> Shown:
        shown = newest(viewer, to)
        return shown if shown and holds(shown) else {}

    return wait_until(look, what=lambda: f"{what}: {newest(viewer, to)}", timeout_s=3 * PATIENCE_S)


def answers(shown: Shown) -> dict[str, str]:
    return {gate["gate"]: gate["answer"] for gate in shown["gates"]}


def all_but_the_soak(shown: Shown) -> bool:
    said = answers(shown)
    return said.pop("soak", "") == "wait" and set(said.values()) == {"pass"}


def test_a_good_driver_passes_every_gate_and_soaks(viewer: Visitor, in_it: ByPolicy):
    before = in_it.version(POLICY)
    version = next(each for each in VERSIONS if each != before)
    in_it.change_driver(POLICY, version=version)

    begun = until(viewer, version, lambda shown: shown["state"] == "rolling", what="a rollout that is followed")
    assert (begun["from_version"], begun["progress"]["total"]) == (before, len(in_it.names(POLICY)))
    through = until(viewer, version, all_but_the_soak, what="a pass of every gate but the soak")
    assert through["progress"]["changed"] == through["progress"]["total"]
    nodes = viewer.all(f"/api/v1/external-rollouts/{through['id']}/nodes")
    assert {(node["state"], node["is_known_before"]) for node in nodes} == {("changed", True)}


def test_a_bad_driver_is_a_finding_and_its_commands_keep_the_rest_from_it(viewer: Visitor, in_it: ByPolicy):
    before = in_it.version(POLICY)
    in_it.change_driver(POLICY, version=BAD)

    def found() -> Shown:
        rows = viewer.all("/api/v1/findings?rule=external-rollout-failing&state=open")
        return rows[0] if rows else {}

    finding = wait_until(found, what=lambda: f"a finding: {newest(viewer, BAD)}", timeout_s=3 * PATIENCE_S)
    assert "Quarterdeck would have halted here" in finding["summary"]
    assert f"{UPGRADE_STATE}=upgrade-required {HOLD}=true" in " ".join(finding["steps"])
    assert newest(viewer, BAD)["progress"]["before"] > 0

    queued = in_it.core.list_node(label_selector=f"{UPGRADE_STATE}=upgrade-required").items
    for node in queued:
        in_it.core.patch_node(node.metadata.name, {"metadata": {"labels": {HOLD: "true"}}})
    in_it.change_driver(POLICY, version=before)
    back = until(viewer, before, lambda shown: shown["from_version"] == BAD, what="the way back, followed")
    assert newest(viewer, BAD)["state"] == "replaced"
    assert back["state"] == "rolling"
    names = {node.metadata.name for node in queued}
    assert BAD not in {version for name, version in in_it.loaded(POLICY).items() if name in names}
