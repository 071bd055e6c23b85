from rollouts.preflight.facts import NodeToChange
from rollouts.preflight.rules.not_ready import are_not_ready
from tests.rollouts.make import lines_of
from tests.rollouts.preflight.make import facts


def test_nodes_that_are_not_ready_are_named_with_why():
    nodes = [NodeToChange("a"), NodeToChange("b", False, "KubeletNotReady: no network"), NodeToChange("c", None)]

    (check,) = are_not_ready(facts(nodes=nodes))

    assert check.sentence == "2 nodes are not Ready. Gates cannot tell whether the new driver broke such a node."
    assert lines_of(check) == ("b: KubeletNotReady: no network", "c: its kubelet is silent")


def test_nodes_that_are_ready_are_no_matter():
    assert list(are_not_ready(facts(nodes=[NodeToChange("a")]))) == []
