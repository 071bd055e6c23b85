"""What only the API server knows bars a start before any node is touched, and the next try goes (Z2, Z10)."""

from collections.abc import Callable

import pytest

from tests.flows.asked import Asked
from tests.flows.cluster import Cluster
from tests.flows.lies import barred_by_each
from tests.flows.plans import Plan, canary, the_others

pytestmark = [pytest.mark.promote, pytest.mark.nightly]


def asks_which_cluster(asked: Asked) -> bool:
    return asked.of("GET", "/api/v1/namespaces/kube-system")


def test_what_bars_a_start_touches_nothing_and_the_next_try_goes(plan_for: Callable[..., Plan], gpu_cluster: Cluster):
    plan = plan_for().draft(canary(), the_others())

    codes = barred_by_each(plan)
    with plan.proxy.slow(asks_which_cluster, 30):
        said = plan.start_in_vain()
    silent = plan.live_answers()
    writes = [asked for asked in plan.requests() if asked.is_write]
    marked, version = gpu_cluster.marked(), gpu_cluster.version(plan.driver)
    plan.start()

    assert codes == ["live-namespace", "live-rights", "live-version", "live-hold"]
    assert [one["result"] for one in silent.values()] == ["unanswered"]
    assert "did not answer in time" in said["why"]
    assert (writes, marked, version) == ([], set(), plan.from_version)
