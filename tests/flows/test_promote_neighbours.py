"""Z17, Z18: NVSentinel and Karpenter watch the nodes, and are kept off each while its driver changes, and no longer."""

from collections.abc import Callable, Iterator

import pytest

from tests.flows.asked import Asked
from tests.flows.cluster import Cluster
from tests.flows.plans import Plan, is_release, node_of

pytestmark = [pytest.mark.promote, pytest.mark.nightly]

WATCHED = "nvsentinel.dgxc.nvidia.com/driver.installed"
OPT_OUT = "k8saas.nvidia.com/ManagedByNVSentinel"
POOL, LEAVE = "karpenter.sh/nodepool", "karpenter.sh/do-not-disrupt"


@pytest.fixture
def watched(gpu_cluster: Cluster) -> Iterator[Cluster]:
    """As NVSentinel's labeller and Karpenter leave their nodes; somebody has told Karpenter something before."""
    for node in gpu_cluster.nodes():
        metadata = {"labels": {WATCHED: "true", POOL: "gpu"}, "annotations": {LEAVE: "false"}}
        gpu_cluster.core.patch_node(node.metadata.name, {"metadata": metadata})
    yield gpu_cluster
    for node in gpu_cluster.nodes():
        metadata = {"labels": {WATCHED: None, POOL: None, OPT_OUT: None}, "annotations": {LEAVE: None}}
        gpu_cluster.core.patch_node(node.metadata.name, {"metadata": metadata})


def written(asked: Asked, key: str) -> object:
    """What a patch makes of a label or annotation: its value, None where it goes, False where it is left alone."""
    place = key.replace("/", "~1")
    for step in asked.body:
        if step["op"] != "test" and step["path"].endswith(place):
            return None if step["op"] == "remove" else step["value"]
    return False


def events(plan: Plan) -> list[dict]:
    return plan.operator.all(f"{plan.path}/events")


def test_each_node_goes_with_what_keeps_them_off_and_has_it_no_more_before_its_stage_soaks(
    plan_for: Callable[..., Plan], watched: Cluster
):
    plan = plan_for().draft().start().until_opening()
    plan.approve()
    shown = plan.until_state("promoted")

    patches = [one for one in plan.requests() if one.method == "PATCH" and "/nodes/" in one.path and one.code == 200]
    releases = {node_of(one): one for one in patches if is_release(one)}
    back = {node_of(one): one for one in patches if written(one, OPT_OUT) is None}
    assert releases.keys() == back.keys() == set(plan.all_targets())
    assert {(written(one, OPT_OUT), written(one, LEAVE)) for one in releases.values()} == {("false", "true")}
    assert {(written(one, OPT_OUT), written(one, LEAVE)) for one in back.values()} == {(None, "false")}
    assert "is removed" in shown["reason"]
    for number in (0, 1):
        of_stage = [event for event in events(plan) if event["stage"] and event["stage"]["id"] == plan.stage_id(number)]
        soaks = next(event["id"] for event in of_stage if (event["what"], event["to"]) == ("stage", "soaking"))
        put_back = {event["node"]: event["id"] for event in of_stage if event["to"] == "put-back"}
        assert put_back.keys() == plan.targets(number).keys()
        assert max(put_back.values()) < soaks
    left = {
        node.metadata.name: (node.metadata.labels.get(OPT_OUT), node.metadata.annotations.get(LEAVE))
        for node in watched.nodes(plan.driver)
    }
    assert set(left.values()) == {(None, "false")}
    assert watched.marked() == set()
