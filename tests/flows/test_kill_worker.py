"""A worker that is killed at any point of a wave: what it began is finished once, by another."""

from collections.abc import Callable
from functools import partial

import pytest

from tests.flows.asked import Asked
from tests.flows.cluster import Cluster
from tests.flows.plans import Plan, canary, is_release, node_of, the_others
from tests.flows.proxy import Proxy
from tests.flows.recorded import RecordedStack

pytestmark = pytest.mark.act


def test_loses_and_doubles_nothing(
    plan_for: Callable[..., Plan], gpu_cluster: Cluster, proxy: Proxy, stack: RecordedStack
):
    """Killed before the intent of the first wave, between intent and act of the second, between act and result of the
    third: each node is let go by exactly one write."""
    plan = plan_for().draft(canary(), the_others()).start().until_opening()
    (first,) = plan.targets(0)
    second, third, _ = plan.targets(1)
    looks_before_it_intends = partial(reads, name=first)
    with (
        proxy.holding(partial(lets_go, name=second)) as act,
        proxy.holding(partial(lets_go, name=third), answer=True) as result,
    ):
        with proxy.holding(looks_before_it_intends) as look:
            plan.approve()
            look.wait()
            before_the_intent = plan.targets(0)[first]
            replace_worker(stack)
        act.wait()
        before_the_act = plan.targets(1)[second]
        replace_worker(stack)
        act.let_go()
        result.wait()
        before_the_result = plan.targets(1)[third]
        replace_worker(stack)
        result.let_go()
        plan.until_state("promoted")

    assert (before_the_intent, before_the_act, before_the_result) == ("held", "releasing", "releasing")
    assert sorted(plan.released()) == sorted(plan.all_targets())
    assert set(gpu_cluster.loaded(plan.driver).values()) == {plan.to_version}
    assert gpu_cluster.marked() == set()


def reads(asked: Asked, *, name: str) -> bool:
    return asked.of("GET", f"/api/v1/nodes/{name}")


def lets_go(asked: Asked, *, name: str) -> bool:
    return is_release(asked) and node_of(asked) == name


def replace_worker(stack: RecordedStack) -> None:
    stack.kill("rollouts")
    stack.restart("rollouts")
