"""A budget's status, by the arithmetic of the disruption controller."""

from datetime import UTC, datetime
from typing import Any

import pytest

from simulator.budgets import counted
from simulator.disruption import BudgetKeeper
from simulator.kinds import DISRUPTION_BUDGET, POD, REPLICA_SET
from simulator.store import Store
from tests.simulator.wire.objects import a_budget, a_pod, a_replica_set, owner_of

NOW = datetime(2026, 1, 1, tzinfo=UTC)
APP = {"app": "web"}


def pods(ready: int, unready: int = 0) -> list[dict[str, Any]]:
    states = [True] * ready + [False] * unready
    return [a_pod(f"web-{index}", node="gpu-1", is_ready=is_ready) for index, is_ready in enumerate(states)]


@pytest.mark.parametrize(
    ("spec", "ready", "unready", "expected", "desired", "allowed"),
    [
        ({"minAvailable": 2}, 3, 0, 3, 2, 1),
        ({"minAvailable": 2}, 2, 1, 3, 2, 0),
        ({"minAvailable": "50%"}, 3, 0, 5, 3, 0),
        ({"maxUnavailable": 1}, 3, 0, 3, 2, 1),
        ({"maxUnavailable": 1}, 2, 1, 3, 2, 0),
        ({"maxUnavailable": "30%"}, 10, 0, 10, 7, 3),
        ({"maxUnavailable": "25%"}, 3, 0, 3, 2, 1),
        ({"maxUnavailable": 5}, 3, 0, 3, 0, 3),
        ({}, 2, 0, 2, 1, 1),
        ({"minAvailable": 0}, 0, 0, 0, 0, 0),
    ],
)
def test_the_numbers(spec: dict[str, Any], ready: int, unready: int, expected: int, desired: int, allowed: int) -> None:
    budget = a_budget("web", APP, **spec)

    status = counted(budget, pods(ready, unready), expected, NOW)

    assert (status["desiredHealthy"], status["disruptionsAllowed"]) == (desired, allowed)
    assert (status["currentHealthy"], status["expectedPods"]) == (ready, expected)


def test_a_pod_on_its_way_out_is_not_healthy() -> None:
    held = pods(2)
    held[0]["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:30Z"

    assert counted(a_budget("web", APP, minAvailable=1), held, 2, NOW)["currentHealthy"] == 1


def test_an_eviction_that_does_not_show_is_forgotten_after_two_minutes() -> None:
    budget = a_budget("web", APP, minAvailable=1)
    budget["status"] = {"disruptedPods": {"web-0": "2025-12-31T23:57:00Z", "web-1": "2025-12-31T23:59:00Z"}}

    status = counted(budget, pods(3), 3, NOW)

    assert (status["disruptedPods"], status["currentHealthy"]) == ({"web-1": "2025-12-31T23:59:00Z"}, 2)


def test_expected_pods_are_what_the_owner_wants_not_what_is_there() -> None:
    store = Store()
    keeper = BudgetKeeper(store)
    owner = owner_of(store.create(REPLICA_SET, a_replica_set("web", replicas=4, labels=APP), "default"))
    for index in range(3):
        store.seed(POD, a_pod(f"web-{index}", node="gpu-1", labels=APP, owner=owner), "default")
    store.create(DISRUPTION_BUDGET, a_budget("web", APP, maxUnavailable=1), "default")

    keeper.look()

    status = store.get(DISRUPTION_BUDGET, "web", "default")["status"]
    assert (status["expectedPods"], status["desiredHealthy"], status["disruptionsAllowed"]) == (4, 3, 0)
    assert status["observedGeneration"] == 1


def test_a_budget_that_is_true_is_not_written_again() -> None:
    store = Store()
    keeper = BudgetKeeper(store)
    store.seed(POD, a_pod("web-0", node="gpu-1", labels=APP), "default")
    store.create(DISRUPTION_BUDGET, a_budget("web", APP, minAvailable=1), "default")
    keeper.look()
    version = store.version

    keeper.look()

    assert store.version == version


def test_pods_that_leave_the_selector_and_forgotten_changes_are_noticed() -> None:
    store = Store()
    keeper = BudgetKeeper(store)
    for index in range(2):
        store.seed(POD, a_pod(f"web-{index}", node="gpu-1", labels=APP), "default")
    store.create(DISRUPTION_BUDGET, a_budget("web", APP, minAvailable=1), "default")
    keeper.look()

    store.patch(POD, "web-0", {"metadata": {"labels": {"app": "other"}}}, "default", how="merge")
    keeper.look()
    left = store.get(DISRUPTION_BUDGET, "web", "default")["status"]["expectedPods"]
    store.delete(POD, "web-1", "default", grace_s=0)
    store.expire()
    keeper.look()

    assert left == 1
    assert store.get(DISRUPTION_BUDGET, "web", "default")["status"]["expectedPods"] == 0
