"""What a person says to a plan that is under way, seen in what the API server was asked."""

from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from demo.visitor import wait_until
from tests.flows.asked import Asked
from tests.flows.cluster import Cluster
from tests.flows.plans import APPROVED, Plan, canary, is_hold, is_release, is_version_write, node_of, the_others
from tests.flows.proxy import Proxy
from tests.patience import PATIENCE_S

pytestmark = [pytest.mark.promote, pytest.mark.nightly]
Planner = Callable[..., Plan]


def test_a_halt_lets_nothing_more_go_and_a_resumption_goes_on(plan_for: Planner, gpu_cluster: Cluster):
    plan = plan_for().draft(canary(), the_others()).start().until_opening()
    plan.approve()
    plan.until(lambda shown: shown["stages"][1]["targets_by_state"].get("changing"), "a change in the second stage")
    plan.notify("halts", "A person has seen something.")
    answered = datetime.now(UTC)
    plan.until_looked_twice()
    later = [release for release in plan.releases() if release.at > answered]
    shown = plan.now()
    plan.notify("resumptions", "It was nothing.")
    plan.until_state("promoted")

    assert len(later) <= 1  # the one that was between its look and its write
    assert (shown["state"], shown["reason"]) == ("halted", "A person has seen something.")
    assert shown["stages"][1]["targets_by_state"]["held"] >= 1
    assert sorted(plan.released()) == sorted(plan.all_targets())
    assert gpu_cluster.marked() == set()


def test_a_pause_holds_again_what_was_let_go_and_has_not_begun(plan_for: Planner, gpu_cluster: Cluster, proxy: Proxy):
    """Z3. The operator has no slot for the node that was let go: another one is cordoned in the same moment."""
    plan = plan_for().draft(canary(), the_others()).start().until_opening()
    (freed,) = plan.targets(0)
    other = next(iter(plan.targets(1)))
    with proxy.holding(is_release) as release:
        plan.approve()
        release.wait()
        gpu_cluster.cordon(other)
    plan.until(lambda _: plan.targets(0) == {freed: "released"}, "a node that was let go")
    plan.notify("pauses", "Not now.")
    plan.until(lambda _: plan.targets(0) == {freed: "held"}, "a node that is held again")
    wait_until(lambda: freed in gpu_cluster.held(plan.driver), what="the label that was meant", timeout_s=PATIENCE_S)
    gpu_cluster.cordon(other, on=False)
    # What is still seen as cordoned would be left out of its stage.
    wait_until(lambda: not plan.seen_cordoned(), what="an uncordoned node that is seen to be", timeout_s=PATIENCE_S)
    plan.until_looked_twice()
    while_paused = plan.released()
    plan.notify("resumptions", "Now.")
    plan.until_state("promoted")

    assert while_paused == [freed]
    assert plan.released().count(freed) == 2
    assert set(gpu_cluster.loaded(plan.driver).values()) == {plan.to_version}


def test_an_abort_before_the_version_is_written_lets_every_node_go(
    plan_for: Planner, gpu_cluster: Cluster, proxy: Proxy
):
    plan = plan_for().draft(canary(), the_others())

    def last_hold(asked: Asked) -> bool:
        return is_hold(asked) and len([one for one in plan.requests() if is_hold(one)]) == 4

    with proxy.holding(last_hold) as hold:
        plan.start()
        hold.wait()
        plan.notify("aborts", "Wrong week.")
    plan.until_state("aborted")

    assert [asked for asked in plan.requests() if is_version_write(asked)] == []
    assert gpu_cluster.version(plan.driver) == plan.from_version
    assert gpu_cluster.marked() == set()


def test_an_abort_after_it_keeps_what_changed_and_lets_the_others_go(plan_for: Planner, gpu_cluster: Cluster):
    plan = plan_for().draft(canary(), the_others(gate_options=APPROVED)).start().until_opening()
    (changed,) = plan.targets(0)
    plan.approve()
    plan.until(lambda shown: shown["stages"][1]["state"] == "opening", "the second stage")
    plan.notify("aborts", "Enough for today.")
    shown = plan.until_state("aborted")

    assert changed in shown["reason"]
    assert gpu_cluster.version(plan.driver) == plan.from_version
    assert gpu_cluster.loaded(plan.driver)[changed] == plan.to_version
    assert gpu_cluster.marked() == gpu_cluster.held() == {changed}
    assert plan.targets(0) == {changed: "changed"}
    assert set(plan.targets(1).values()) == {"not-begun"}
    assert {node_of(release) for release in plan.releases()} == set(gpu_cluster.names(plan.driver))
