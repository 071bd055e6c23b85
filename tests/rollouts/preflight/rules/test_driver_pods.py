from rollouts.preflight.facts import DaemonSetFacts
from rollouts.preflight.rules.driver_pods import are_missing
from tests.rollouts.make import lines_of
from tests.rollouts.preflight.make import facts


def said(*daemonsets) -> list:
    return list(are_missing(facts(driver_daemonsets=daemonsets)))


def test_a_daemonset_with_all_of_its_pods_is_well():
    assert said(DaemonSetFacts("driver-a", 3, 3)) == []


def test_one_that_lacks_a_pod_stops_the_operator_everywhere():
    (check,) = said(DaemonSetFacts("driver-a", 3, 3), DaemonSetFacts("driver-b", 3, 2))

    assert check.sentence == (
        "1 driver DaemonSet lacks pods. Until then the operator's upgrade controller changes no node."
    )
    assert lines_of(check) == ("driver-b: wants 3 pods, has 2",)


def test_a_pod_that_finds_no_node_is_named_with_why():
    (check,) = said(DaemonSetFacts("driver-a", 1, 1, ("gpu-operator/driver-a-x: Unschedulable: a taint",)))

    assert lines_of(check) == ("gpu-operator/driver-a-x: Unschedulable: a taint: no node",)
