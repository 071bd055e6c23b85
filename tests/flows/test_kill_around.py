"""What Quarterdeck stands on goes away in the middle of a promotion, and comes back."""

from collections.abc import Callable

import pytest

from tests.flows.cluster import Cluster
from tests.flows.plans import APPROVED, Plan, canary, the_others
from tests.flows.recorded import RecordedStack

pytestmark = [pytest.mark.act, pytest.mark.nightly]


def test_a_promotion_outlives_the_observing_worker_and_redis(
    plan_for: Callable[..., Plan], gpu_cluster: Cluster, stack: RecordedStack
):
    plan = plan_for().draft(canary(), the_others(gate_options=APPROVED)).start().until_opening()
    plan.approve()
    plan.until(lambda _: plan.released(), "the first release")
    stack.kill("observe")
    stack.restart("observe")
    plan.until(lambda shown: shown["stages"][1]["state"] == "opening", "a canary whose change nobody was there to see")
    plan.approve(1)
    plan.until(lambda _: len(plan.released()) > 1, "a release in the second stage")
    stack.kill("valkey")
    stack.restart("valkey")
    plan.until_state("promoted")

    assert sorted(plan.released()) == sorted(plan.all_targets())
    assert set(gpu_cluster.loaded(plan.driver).values()) == {plan.to_version}
    assert gpu_cluster.marked() == set()
