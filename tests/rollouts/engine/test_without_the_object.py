"""The driver object is deleted or made again, or the operator's upgrade controller is switched off, in mid-plan."""

import pytest

from fleet.models import DriverObject
from rollouts.commands import plan_control
from rollouts.lifecycle import PlanState
from rollouts.models import Hold
from simulator.actors.gpu_operator.kinds import CLUSTER_POLICY, NVIDIA_DRIVER
from simulator.kinds import DAEMON_SET
from tests.rollouts.engine.ground import CANARY, NEW, NODES, OLD, REST, Ground
from tests.rollouts.engine.test_ends import rolled_back, say

pytestmark = pytest.mark.rounds


def delete_the_object(ground: Ground) -> None:
    ground.store.delete(NVIDIA_DRIVER, "h100", grace_s=0)


def make_it_again(ground: Ground) -> None:
    """Another object by the same name; the operator's DaemonSet for the earlier one goes with that."""
    known = ground.store.get(NVIDIA_DRIVER, "h100")
    delete_the_object(ground)
    ground.store.seed(NVIDIA_DRIVER, {"metadata": {"name": "h100"}, "spec": known["spec"]})
    for one in ground.daemonsets():
        if ground.owns(one):
            ground.store.delete(DAEMON_SET, one["metadata"]["name"], one["metadata"]["namespace"], grace_s=0)


GONE = pytest.mark.parametrize(
    ("happens", "says"),
    [
        (delete_the_object, "h100 was deleted."),
        (make_it_again, "was deleted and created again, so it is a different object"),
    ],
)


@GONE
def test_it_halts_and_says_what_ends_it(ground: Ground, happens, says: str):
    ground.armed()
    happens(ground)

    ground.rounds(2)

    assert ground.plan.state == PlanState.HALTED
    assert says in ground.plan.reason
    assert "Abort ends the plan and removes all holds." in ground.plan.waiting_for
    assert ground.held() == set(NODES)


@GONE
def test_it_halts_before_the_version_is_written(ground: Ground, happens, says: str):
    ground.start()
    ground.round()
    happens(ground)

    ground.round()

    assert (ground.plan.state, says in ground.plan.reason) == (PlanState.HALTED, True)


@pytest.mark.nightly
@GONE
@pytest.mark.parametrize("is_rolling_back", [False, True])
def test_an_abort_then_frees_every_hold(ground: Ground, happens, says: str, is_rolling_back: bool):
    ground.armed()
    if is_rolling_back:
        say(plan_control.roll_back, ground)
        ground.round()
    happens(ground)
    ground.round()

    say(plan_control.abort, ground)
    for _ in range(4):
        ground.round()

    assert ground.plan.state == PlanState.ABORTED
    assert says in ground.plan.reason
    assert (
        "All holds are removed. No node had begun to change. Its driver pods were deleted with it" in ground.plan.reason
    )
    assert ground.held() == set()
    assert not Hold.objects.filter(plan=ground.plan).blocking_changes().exists()
    assert not ground.plan.is_armed


def switch_off(ground: Ground) -> None:
    """As the operator does: it takes the state label off every node."""
    for name in NODES:
        ground.set_state(name, None)
    ground.store.patch(NVIDIA_DRIVER, "h100", {"spec": {"upgradePolicy": {"autoUpgrade": False}}}, how="merge")
    ground.look()
    assert not DriverObject.objects.get(name="h100").upgrade_policy["autoUpgrade"]


def moved_canary(ground: Ground) -> None:
    ground.armed()
    ground.rounds(2)
    ground.take_the_new_driver(CANARY)
    ground.set_state(CANARY, "upgrade-done")
    ground.rounds(2)


@pytest.mark.nightly
def test_without_auto_upgrade_the_rollback_frees_what_never_changed_and_names_what_it_cannot_bring_back(ground: Ground):
    moved_canary(ground)
    switch_off(ground)

    say(plan_control.roll_back, ground)
    ground.rounds(5)

    assert ground.version() == OLD
    assert ground.held() == {CANARY}
    assert f"autoUpgrade is off: the operator does not bring {CANARY} back to {OLD}." in ground.plan.waiting_for
    assert "or abort" in ground.plan.waiting_for


@pytest.mark.nightly
def test_without_auto_upgrade_an_abort_ends_and_lists_what_has_changed(ground: Ground):
    moved_canary(ground)
    switch_off(ground)

    say(plan_control.abort, ground)
    rolled_back(ground)

    assert ground.plan.state == PlanState.ABORTED, ground.plan.waiting_for
    assert f"{CANARY} changed or failed, and stays held. autoUpgrade is off." in ground.plan.reason
    assert ground.held() == {CANARY}
    assert set(REST).isdisjoint(ground.held())


def test_with_sandbox_workloads_the_rollback_names_what_it_cannot_bring_back(ground: Ground):
    moved_canary(ground)
    ground.store.patch(CLUSTER_POLICY, "cluster-policy", {"spec": {"sandboxWorkloads": {"enabled": True}}}, how="merge")
    ground.look()

    say(plan_control.roll_back, ground)
    ground.rounds(5)

    assert ground.held() == {CANARY}
    assert f"sandboxWorkloads is on: the operator does not bring {CANARY} back to {OLD}." in ground.plan.waiting_for
    assert "Switch it off in the ClusterPolicy, or abort" in ground.plan.waiting_for


@pytest.mark.nightly
def test_without_auto_upgrade_and_nothing_changed_the_rollback_ends(ground: Ground):
    ground.armed()
    switch_off(ground)
    assert ground.version() == NEW

    say(plan_control.roll_back, ground)
    ground.rounds(6)

    assert ground.plan.state == PlanState.ROLLED_BACK, ground.plan.waiting_for
    assert ground.held() == set()
