"""Z17: what an autoscaler has marked is named before the start."""

import pytest

from rollouts.preflight.facts import NodeToChange
from rollouts.preflight.rules.autoscalers import may_take_nodes
from tests.rollouts.make import lines_of
from tests.rollouts.preflight.make import facts

KARPENTERS = {"karpenter.sh/nodepool": "gpu"}


def said(*nodes: NodeToChange) -> dict:
    return {check.code: check for check in may_take_nodes(facts(nodes=nodes))}


def test_a_node_that_nobody_has_marked_is_no_matter():
    assert said(NodeToChange("a", taints=("nvidia.com/gpu",))) == {}


@pytest.mark.parametrize(
    "taint",
    [
        "karpenter.sh/disrupted",
        "karpenter.sh/disruption",
        "ToBeDeletedByClusterAutoscaler",
        "DeletionCandidateOfClusterAutoscaler",
    ],
)
def test_a_node_that_is_to_be_taken_away_is_grave(taint):
    check = said(NodeToChange("a", taints=("x", taint)))["autoscaler-takes"]

    assert check.sentence == "An autoscaler is removing a. A node that is removed during its change counts as failed."
    assert lines_of(check) == (f"a: {taint}",)
    assert check.is_grave


def test_karpenters_nodes_are_named_with_what_holds_it_off():
    check = said(NodeToChange("a", labels=KARPENTERS), NodeToChange("b", labels=KARPENTERS))["karpenter"]

    assert check.title == "Karpenter may replace 2 nodes during the plan"
    assert "karpenter.sh/do-not-disrupt=true" in check.summary
    assert not check.is_grave


def test_a_node_that_karpenter_leaves_alone_is_no_matter():
    assert said(NodeToChange("a", labels=KARPENTERS, annotations={"karpenter.sh/do-not-disrupt": "true"})) == {}
