"""A driver under which tenants' GPU pods crash: it is stopped where it was tried, and put back."""

from collections.abc import Callable

import pytest

from tests.flows.cluster import Cluster
from tests.flows.plans import BAD, Plan, canary, is_version_write, the_others

pytestmark = pytest.mark.promote


def test_halts_in_the_canary_and_goes_back(plan_for: Callable[[], Plan], gpu_cluster: Cluster):
    """Z5, Z26: every node runs the old driver again, the failed one too, and nothing of ours is left."""
    plan = plan_for().draft(canary(), the_others(), to=BAD).start().until_opening()
    before = gpu_cluster.loaded(plan.driver)
    (tried,) = plan.targets(0)
    plan.approve()
    halted = plan.until_state("halted")
    page, offered = plan.page(), plan.page("gate-review")
    loaded = gpu_cluster.loaded(plan.driver)
    others = set(plan.targets(1).values())
    disrupted = plan.released()
    plan.notify("rollbacks", "Its workloads crash.")
    plan.until_state("rolled-back")

    assert tried in halted["reason"]
    assert f"Rolls 1 node back to {plan.from_version}: {tried}." in page
    assert "The only changed node failed: nothing to compare" in page
    assert "Add to a new draft" in offered
    assert [stage["state"] for stage in halted["stages"] if stage["kind"] == "canary"] == ["halted"]
    assert loaded == before | {tried: BAD}
    assert (disrupted, others) == ([tried], {"held"})
    assert gpu_cluster.loaded(plan.driver) == before
    assert [write.body[-1]["value"] for write in plan.requests() if is_version_write(write)] == [BAD, plan.from_version]
    assert gpu_cluster.marked() == gpu_cluster.held() == set()
    assert set(plan.targets(1).values()) == {"not-begun"}
