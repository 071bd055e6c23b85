"""Somebody else changes what driver pods are made of, in mid-plan (hazard Z11)."""

from functools import partial

import pytest

from edges.transition_errors import LostRace
from rollouts.commands import plan_control
from rollouts.commands.handover import hand_over
from rollouts.engine.templates import digests_of, remember
from rollouts.lifecycle import PlanState, StageState
from rollouts.models import Approval
from rollouts.queries.handover import handover_of
from simulator.actors.gpu_operator.kinds import NVIDIA_DRIVER
from simulator.kinds import CONTROLLER_REVISION
from tests.make import somebody_who_approves
from tests.rollouts.engine.ground import NODES, OLD, Ground
from tests.rollouts.engine.test_ends import say

pytestmark = pytest.mark.rounds
ENV = {"env": [{"name": "HTTPS_PROXY", "value": "http://user:secret@proxy"}]}


def change_the_env(ground: Ground) -> None:
    ground.store.patch(NVIDIA_DRIVER, "h100", {"spec": ENV}, how="merge")


def make_a_template(ground: Ground, mark: str) -> None:
    """As the DaemonSet controller does for each of the object's, once its template is another."""
    mine = {one["metadata"]["uid"] for one in ground.daemonsets() if ground.owns(one)}
    listed, _, _ = ground.store.list(CONTROLLER_REVISION, "gpu-operator")
    for last in [one for one in listed if one["metadata"]["ownerReferences"][0]["uid"] in mine]:
        metadata = last["metadata"]
        labels = metadata["labels"] | {"controller-revision-hash": mark}
        named = {"name": f"{metadata['name']}-{mark}", "labels": labels, "ownerReferences": metadata["ownerReferences"]}
        newer = {"metadata": named, "revision": len(listed) + last["revision"] + 1, "data": last["data"]}
        ground.store.seed(CONTROLLER_REVISION, newer, "gpu-operator")


def approved(ground: Ground) -> Approval:
    stage = ground.stage()
    row = {"by": "amy", "at": ground.clock(), "is_rejection": False, "reason": "", "bundle": {}}
    return Approval.objects.create(stage=stage, bundle_hash="x", **row)


def test_it_halts_with_what_changed_and_voids_what_was_approved(ground: Ground):
    ground.armed()
    approval = approved(ground)
    change_the_env(ground)

    ground.rounds(2)

    approval.refresh_from_db()
    assert ground.plan.state == PlanState.HALTED
    assert "spec.env of NVIDIADriver h100 was changed by somebody else" in ground.plan.reason
    assert "spec.env" in approval.void_reason
    assert ground.held() == set(NODES)


def test_it_halts_before_the_version_is_written(ground: Ground):
    ground.start()
    ground.round()
    make_a_template(ground, "other1")

    ground.round()

    assert ground.plan.state == PlanState.HALTED
    assert "The template of DaemonSet" in ground.plan.reason


def test_a_change_by_the_operator_is_seen_by_the_revision_alone(ground: Ground):
    """An upgrade of the operator leaves the object as it is."""
    ground.armed()
    make_a_template(ground, "new1")
    ground.rounds(2)
    assert ground.plan.state == PlanState.PROMOTING, ground.plan.waiting_for

    make_a_template(ground, "new2")
    ground.round()

    assert ground.plan.state == PlanState.HALTED
    assert "or by the operator" in ground.plan.reason


def test_no_value_of_the_spec_is_kept(ground: Ground):
    ground.armed()
    change_the_env(ground)
    ground.rounds(2)

    assert "secret" not in str((ground.plan.templates, ground.plan.template_change, ground.plan.reason))


@pytest.mark.nightly
def test_who_resumes_takes_it_and_each_stage_is_approved_again(ground: Ground):
    somebody_who_approves()
    gates = {"driver_version": {}, "failure_budget": {}, "approval": {}}
    ground.start(gates=gates)
    ground.rounds(3)
    for name in NODES:
        ground.set_state(name, "upgrade-required")
    ground.rounds(2)
    change_the_env(ground)
    ground.rounds(2)

    say(plan_control.resume, ground)
    ground.rounds(2)

    assert ground.plan.state == PlanState.PROMOTING, ground.plan.reason
    assert ground.stage().state == StageState.OPENING
    assert ground.releases() == []

    ground.store.patch(NVIDIA_DRIVER, "h100", {"spec": {"env": []}}, how="merge")
    ground.round()
    assert ground.plan.state == PlanState.HALTED


def on_the_way_to_another_template(ground: Ground, verb) -> None:
    ground.armed()
    make_a_template(ground, "new1")
    ground.rounds(2)
    change_the_env(ground)
    make_a_template(ground, "new2")
    ground.round()
    assert ground.plan.state == PlanState.HALTED
    say(verb, ground)
    ground.rounds(2)
    assert ground.version() == OLD
    make_a_template(ground, "old2")


@pytest.mark.nightly
def test_the_rollback_asks_a_person_where_the_old_version_has_another_template_now(ground: Ground):
    """Z32: waiting for the earlier one has no end."""
    on_the_way_to_another_template(ground, plan_control.roll_back)

    ground.rounds(2)

    pause = ground.plan.commands.in_force().get()
    assert f"{OLD} is back in the object, but not its earlier template." in pause.reason
    assert ground.held() == set(NODES)


def test_a_rollback_then_takes_every_node_to_it_in_waves(ground: Ground):
    on_the_way_to_another_template(ground, plan_control.roll_back)
    ground.rounds(2)

    say(plan_control.resume, ground)
    ground.rounds(3)

    assert ground.plan.stages.get(kind="rollback").targets.count() == len(NODES)
    assert "another template" not in ground.plan.waiting_for
    assert len(ground.releases()) <= 1


@pytest.mark.nightly
def test_an_abort_then_holds_every_node_until_they_are_handed_over_and_lets_them_go_in_waves(ground: Ground):
    """Z38: the operator has queued them, and would take all of them."""
    on_the_way_to_another_template(ground, plan_control.abort)
    for name in NODES:
        ground.set_state(name, "upgrade-required")
    ground.rounds(3)
    assert ground.held() == set(NODES)
    assert "A person decides: hand over the nodes, or restore" in ground.plan.waiting_for
    ground.writes()

    say(partial(hand_over, seen=handover_of(ground.plan).seen), ground)
    ground.rounds(4)

    assert len(ground.releases()) == 1


def test_what_a_person_has_taken_meanwhile_is_not_overwritten(ground: Ground):
    ground.armed()
    change_the_env(ground)
    ground.rounds(2)
    plan = ground.take_lease()
    say(plan_control.resume, ground)

    with pytest.raises(LostRace):
        remember(plan, None, now=ground.clock())

    ground.plan.refresh_from_db()
    assert ground.plan.templates["spec"] == digests_of(ground.plan, ground.driver_spec())
