"""Leaving: what Quarterdeck has put into a cluster can be named, and taken out, by one command."""

from collections.abc import Callable

import pytest

from demo.stack import CLUSTER, StackError
from tests.flows.cluster import Cluster
from tests.flows.plans import Plan
from tests.flows.recorded import RecordedStack

pytestmark = [pytest.mark.act, pytest.mark.nightly]


def test_release_all_takes_off_everything_of_ours(
    plan_for: Callable[..., Plan], gpu_cluster: Cluster, stack: RecordedStack
):
    """Z33: not before the plans are given up, for they would hold again."""
    plan = plan_for().draft().start().until_opening()
    held = gpu_cluster.held()
    before = plan.proxy.count

    named = stack.manage(["release_all", CLUSTER, "--dry-run"])
    with pytest.raises(StackError, match="in progress would hold the nodes again"):
        stack.manage(["release_all", CLUSTER])
    touched = [asked for asked in plan.proxy.requests(before) if asked.method == "PATCH"]
    said = stack.manage(["release_all", CLUSTER, "--give-up-plans", "We leave."])

    assert held == set(gpu_cluster.names(plan.driver))
    assert all(f"{name}: held by plan-{plan.id}" in named for name in held)
    assert f"plan-{plan.id}) is promoting, and the cluster requests {plan.to_version}" in named
    assert touched == []
    assert gpu_cluster.marked() == set()
    assert said.splitlines()[-1] == f"{CLUSTER}: no objects of Quarterdeck are left."
    assert plan.now()["state"] == "aborted"
