"""What Quarterdeck stands on goes away in the middle of a promotion, and comes back."""

from collections.abc import Callable

import pytest

from demo.visitor import Visitor, wait_until
from tests.flows.cluster import PATIENCE_S, Cluster
from tests.flows.plans import APPROVED, Plan, canary, the_others
from tests.flows.recorded import RecordedStack

pytestmark = pytest.mark.act


def test_a_promotion_outlives_the_observing_worker_and_redis(
    plan_for: Callable[..., Plan], gpu_cluster: Cluster, stack: RecordedStack
):
    plan = plan_for().draft(canary(), the_others(gate_options=APPROVED)).start().until_opening()
    plan.approve()
    plan.until(lambda _: plan.released(), "the first release")
    stack.kill("observe")
    stack.restart("observe")
    plan.until(lambda shown: shown["stages"][1]["state"] == "opening", "a canary that passed")
    plan.approve(1)
    plan.until(lambda _: len(plan.released()) > 1, "a release in the second stage")
    stack.kill("valkey")
    stack.restart("valkey")
    plan.until_state("promoted")

    assert sorted(plan.released()) == sorted(plan.all_targets())
    assert set(gpu_cluster.loaded(plan.driver).values()) == {plan.to_version}
    assert gpu_cluster.marked() == set()


def test_a_killed_observer_misses_nothing(gpu_cluster: Cluster, stack: RecordedStack, operator: Visitor):
    name = gpu_cluster.names("h100")[0]
    stack.kill("observe")
    with gpu_cluster.cordoned(name):
        stack.restart("observe")

        wait_until(lambda: is_cordoned(operator, name), what="the change of that time", timeout_s=PATIENCE_S)


def is_cordoned(operator: Visitor, name: str) -> bool:
    return any(row["is_unschedulable"] for row in operator.all("/api/v1/nodes", name=name))
