from rollouts.preflight.facts import NodeToChange
from rollouts.preflight.rules.not_ready import are_not_ready
from tests.rollouts.preflight.make import facts


def test_nodes_that_are_not_ready_are_named_with_why():
    nodes = [NodeToChange("a"), NodeToChange("b", False, "KubeletNotReady: no network"), NodeToChange("c", None)]

    (check,) = are_not_ready(facts(nodes=nodes))

    assert check.sentence == "b, c are not Ready, and are to change in this plan."
    assert check.about == ("b: KubeletNotReady: no network", "c: its kubelet is silent")


def test_nodes_that_are_ready_are_no_matter():
    assert list(are_not_ready(facts(nodes=[NodeToChange("a")]))) == []
