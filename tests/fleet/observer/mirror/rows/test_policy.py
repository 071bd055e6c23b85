"""Budgets as in kubernetes.io/docs/tasks/run-application/configure-pdb."""

from typing import Any

import msgspec

from fleet.observer.mirror.rows.policy import budget_row
from kube.structs.cluster_objects import BudgetSeen

COUNTED = {
    "conditions": [
        {"type": "DisruptionAllowed", "status": "True", "reason": "SufficientPods", "observedGeneration": 1}
    ],
    "currentHealthy": 3,
    "desiredHealthy": 2,
    "disruptionsAllowed": 1,
    "expectedPods": 3,
    "observedGeneration": 1,
}
SELECTOR = {"matchLabels": {"app": "zookeeper"}, "matchExpressions": [{"key": "tier", "operator": "Exists"}]}


def a_budget(status: object = COUNTED, *, generation: int = 1, **spec: Any) -> BudgetSeen:
    metadata = {"name": "zk-pdb", "namespace": "research", "uid": "uid-of-pdb", "generation": generation}
    return msgspec.convert({"metadata": metadata, "spec": spec, "status": status}, BudgetSeen, strict=False)


def test_a_budget_says_how_many_may_go_now():
    row = budget_row(a_budget(minAvailable=2, selector=SELECTOR, unhealthyPodEvictionPolicy="AlwaysAllow"))

    assert (row["disruptions_allowed"], row["current_healthy"], row["desired_healthy"], row["expected_pods"]) == (
        1,
        3,
        2,
        3,
    )
    assert (row["min_available"], row["max_unavailable"], row["selector"]) == ("2", "", SELECTOR)
    assert row["unhealthy_pod_eviction_policy"] == "AlwaysAllow"


def test_numbers_and_percentages_stay_as_they_are_written():
    assert budget_row(a_budget(maxUnavailable="30%"))["max_unavailable"] == "30%"
    assert budget_row(a_budget(maxUnavailable=0))["max_unavailable"] == "0"


def test_what_was_not_counted_yet_is_not_zero():
    assert budget_row(a_budget(None))["disruptions_allowed"] is None
    assert budget_row(a_budget({}))["disruptions_allowed"] is None
    assert budget_row(a_budget(generation=2))["disruptions_allowed"] is None
    assert budget_row(a_budget(COUNTED | {"disruptionsAllowed": 0}))["disruptions_allowed"] == 0


def test_no_selector_and_an_empty_one_are_two_things():
    assert budget_row(a_budget())["selector"] is None
    assert budget_row(a_budget(selector={}))["selector"] == {}
