"""Hazard Z5: the rollback in the one order that harms nobody, as a table of snapshots."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from rollouts.engine.decide import decide
from rollouts.engine.decide.acts import (
    ClearUpgradeState,
    Decision,
    FinishRelease,
    LiftHolds,
    MovePlan,
    MoveStage,
    OpenRollbackStage,
    PlaceHolds,
    Recall,
    ReleaseUnmanagedNodes,
    ReleaseWave,
    RequeueFailed,
    WriteVersion,
)
from rollouts.engine.snapshot import NodeSnapshot, Snapshot
from rollouts.gates.allocatable_restored import AllocatableRestored
from rollouts.gates.base import TargetEvidence
from rollouts.gates.driver_version import DriverVersion
from rollouts.gates.failure_budget import FailureBudget
from rollouts.gates.soak import Soak
from rollouts.gates.workloads_ready import WorkloadsReady
from rollouts.lifecycle import PlanState, StageState, TargetState
from tests.make import NOON
from tests.rollouts.make import (
    DAEMONSET,
    NEW,
    NEW_HASH,
    OLD,
    OLD_HASH,
    a_baseline,
    a_held_target,
    a_node_snapshot,
    a_rollback_stage,
    a_snapshot,
    a_stage,
    a_target,
    evidence,
    put_back,
    with_facts,
)

ROLLING_BACK, ABORTING = PlanState.ROLLING_BACK, PlanState.ABORTING
BOTH = pytest.mark.parametrize("state", [ROLLING_BACK, ABORTING])


def untouched(name: str = "a", **given: Any) -> NodeSnapshot:
    """Held, and still on the old driver."""
    return a_node_snapshot(name, **given)


def moved(name: str = "b", **given: Any) -> NodeSnapshot:
    """On the new driver, held again."""
    row = {"driver_version": NEW, "pod_hash": NEW_HASH, "upgrade_state": "upgrade-required"}
    return a_node_snapshot(name, **row | given)


def free(node: NodeSnapshot) -> NodeSnapshot:
    return replace(node, has_label=False, label_is_ours=False, hold_wanted=False)


def still_written(*nodes: NodeSnapshot, state: PlanState = ROLLING_BACK, **given: Any) -> Snapshot:
    """The new version is still in the object."""
    return a_snapshot(nodes=nodes, state=state, **given)


def restored(*nodes: NodeSnapshot, back: tuple[TargetEvidence, ...] = (), **given: Any) -> Snapshot:
    stage = {"state": given.pop("stage_state", StageState.PROMOTING if back else StageState.WAITING)}
    stage |= {key: given.pop(key) for key in ("max_unavailable", "gates", "evidence") if key in given}
    return put_back(a_snapshot(a_rollback_stage(*back, **stage), nodes=nodes), **given)


def decided(snapshot: Snapshot) -> Decision:
    return decide(snapshot, now=NOON)


def plan_moves(decision: Decision) -> list[PlanState]:
    return [move.to for move in decision.moves if isinstance(move, MovePlan)]


def held_target(name: str = "b", **given: Any) -> TargetEvidence:
    return a_held_target(name, **{"driver_version": NEW} | given)


# The order


@BOTH
@pytest.mark.parametrize("node", [untouched(), moved(), moved(upgrade_state="upgrade-failed")])
def test_first_every_node_is_held_moved_and_failed_ones_too(state: PlanState, node: NodeSnapshot):
    """Z5 (1)."""
    decision = decided(still_written(free(node), untouched("z"), state=state))

    assert decision.acts == (PlaceHolds({node.uid: node.name}),)


@BOTH
def test_then_the_version_is_put_back(state: PlanState):
    """Z5 (2)."""
    decision = decided(still_written(untouched(), moved(), state=state))

    assert decision.acts == (WriteVersion(NEW, OLD),)


@BOTH
@pytest.mark.parametrize(
    "not_yet",
    [{"newest_hashes": {DAEMONSET: NEW_HASH}}, {"unsettled": ("nvidia-driver",)}],
    ids=["template", "generation"],
)
def test_then_the_template_has_to_follow(state: PlanState, not_yet: dict):
    """Z5 (3)."""
    decision = decided(restored(untouched(upgrade_state="upgrade-done"), moved(), state=state, **not_yet))

    assert not decision.acts
    assert not decision.moves


def test_a_daemonset_that_came_later_has_no_template_to_go_back_to():
    later = {"newest_hashes": {DAEMONSET: OLD_HASH, "uid-of-a-later-one": "hash-of-its-own"}}

    assert decided(restored(untouched(), **later)).acts


@BOTH
def test_then_nodes_that_never_changed_lose_the_operators_mark(state: PlanState):
    """Z5 (4): taking the hold off first would send them through a drain for nothing (nvidia.md 2.8)."""
    decision = decided(restored(untouched("a"), untouched("z", upgrade_state="upgrade-done"), moved(), state=state))

    assert decision.acts == (ClearUpgradeState({"uid-of-a": "a"}),)


def test_one_that_failed_once_and_waited_for_its_turn_is_the_operators_to_bring_back():
    """It has cordoned it: without a state it would be called done, and stay cordoned for ever (hazard Z5)."""
    node = a_node_snapshot("a", upgrade_state="upgrade-required", is_unschedulable=True)
    stage = a_stage(a_held_target("a", is_retried=True))

    decision = decided(put_back(a_snapshot(stage, a_rollback_stage(state=StageState.WAITING), nodes=(node,))))

    assert decision.acts == (ClearUpgradeState({"uid-of-a": "a"}, frozenset({"uid-of-a"})),)


@BOTH
def test_and_wait_until_the_operator_calls_them_done(state: PlanState):
    """Z5 (4)."""
    decision = decided(restored(untouched(upgrade_state=""), moved(), state=state))

    assert not decision.acts
    assert not decision.moves


@BOTH
def test_and_only_then_they_are_released(state: PlanState):
    """Z5 (4)."""
    decision = decided(restored(untouched(upgrade_state="upgrade-done"), moved(), state=state))

    assert decision.acts == (LiftHolds({"uid-of-a": "a"}),)


def test_nodes_that_changed_become_targets_of_the_rollback():
    nodes = (free(untouched(upgrade_state="upgrade-done")), moved("b"), moved("c", upgrade_state="upgrade-failed"))

    assert decided(restored(*nodes)).acts == (OpenRollbackStage({"uid-of-b": "b", "uid-of-c": "c"}),)


def test_failed_nodes_are_put_back_into_the_queue():
    """Z5 (5): they leave upgrade-failed no other way, and each holds a slot."""
    snapshot = restored(
        moved("b", upgrade_state="upgrade-failed"), moved("c"), back=(held_target("b"), held_target("c"))
    )

    assert decided(snapshot).acts == (RequeueFailed({"uid-of-b": "b"}),)


def test_a_failed_node_that_is_in_sync_again_finds_its_own_way():
    node = untouched("b", upgrade_state="upgrade-failed")

    assert not any(isinstance(act, RequeueFailed) for act in decided(restored(node, back=(held_target("b"),))).acts)


def test_changed_nodes_go_back_in_waves():
    """Z5 (6)."""
    snapshot = restored(moved("b"), moved("c"), back=(held_target("b"), held_target("c")))

    (act,) = decided(snapshot).acts

    assert isinstance(act, ReleaseWave)
    assert act.targets == ("b",)


def test_the_next_wave_waits_for_the_last():
    back = (held_target("b", state=TargetState.RELEASED), held_target("c"))

    decision = decided(restored(free(moved("b")), moved("c"), back=back))

    assert not decision.acts


def test_a_broken_node_loses_nothing_by_going_first():
    back = (held_target("b"), held_target("c"))
    nodes = (moved("b"), moved("c", is_unschedulable=True))

    (act,) = decided(restored(*nodes, back=back)).acts

    assert act.targets == ("c",)


def test_broken_nodes_go_one_wave_after_the_other_too():
    """The budget is asked again before each is recorded: to try each second is to lose each second."""
    back = (held_target("b", state=TargetState.RELEASED), held_target("c"))
    nodes = (free(moved("b", is_unschedulable=True)), moved("c", is_unschedulable=True))

    assert not decided(restored(*nodes, back=back)).acts


def test_a_stage_that_is_evaluated_takes_up_who_has_to_go_back_after_all():
    """The operator queued it anew, or it changed once more: only a stage that promotes lets anybody go."""
    back = (a_target("a", driver_version=OLD), held_target("b"))
    nodes = (free(untouched("a", upgrade_state="upgrade-done")), moved("b"))
    evaluated = restored(*nodes, back=back, stage_state=StageState.SOAKING)

    decision = decided(evaluated)

    assert decision.moves == (MoveStage(9, StageState.PROMOTING, "b must roll back after all."),)
    assert not decision.acts


def test_it_is_over_when_every_node_is_back():
    node = free(untouched("b", upgrade_state="upgrade-done"))
    back = a_target("b", driver_version=OLD)

    over = restored(node, back=(back,), stage_state=StageState.SOAKING)

    assert plan_moves(decided(over)) == [PlanState.ROLLED_BACK]


def test_a_gate_that_fails_in_the_rollback_warns_and_stops_nobody():
    """Z32: what is left goes on being rolled back."""
    back = (a_target("b", driver_version=OLD, is_ready=False), held_target("c"))
    nodes = (free(untouched("b", upgrade_state="upgrade-done")), moved("c"))
    snapshot = restored(*nodes, back=back, gates=(FailureBudget(),), max_unavailable=2)

    decision = decided(snapshot)

    assert decision.results[9]["failure_budget"].answer == "fail"
    assert not plan_moves(decision)
    assert isinstance(decision.acts[0], ReleaseWave)


def test_a_gate_that_fails_at_the_end_is_named_and_keeps_no_node_from_the_end():
    """Z32."""
    back = (a_target("b", driver_version=OLD, is_ready=False),)
    nodes = (free(untouched("b", upgrade_state="upgrade-done")),)
    snapshot = restored(*nodes, back=back, gates=(FailureBudget(),), stage_state=StageState.SOAKING)

    decision = decided(snapshot)

    assert plan_moves(decision) == [PlanState.ROLLED_BACK]
    assert "a gate fails: b failed. The node is not Ready." in decision.waiting_for


def test_a_node_of_which_nobody_knows_how_many_gpus_it_had_holds_nobody_for_ever():
    """Z32: what can never be told is a warning in the rollback."""
    back = (a_target("b", driver_version=OLD, baseline=a_baseline(allocatable=None)),)
    nodes = (free(untouched("b", upgrade_state="upgrade-done")),)
    snapshot = restored(*nodes, back=back, gates=(AllocatableRestored(), Soak()), stage_state=StageState.SOAKING)

    decision = decided(snapshot)

    assert plan_moves(decision) == [PlanState.ROLLED_BACK]
    assert "This could not be evaluated: The state of b before the change is unknown." in decision.waiting_for


def test_a_gate_that_cannot_tell_in_the_rollback_has_the_stages_wait_timeout_and_no_more():
    back = (a_target("b", driver_version="", upgrade_state="upgrade-done"),)
    nodes = (free(untouched("b", upgrade_state="upgrade-done")),)
    snapshot = restored(*nodes, back=back, gates=(DriverVersion(timedelta(hours=9)),), stage_state=StageState.SOAKING)

    assert not plan_moves(decided(snapshot))
    assert plan_moves(decide(snapshot, now=NOON + timedelta(hours=2))) == [PlanState.ROLLED_BACK]


def test_tenants_that_have_not_come_back_hold_the_end_and_an_idle_node_does_not():
    """A rollback is done when workloads run again. The restored version needs no other proof."""
    back = (a_target("b", driver_version=OLD, upgrade_state="upgrade-done", test_job=None),)
    nodes = (free(untouched("b", upgrade_state="upgrade-done")),)
    soaking = {"back": back, "gates": (WorkloadsReady(),), "stage_state": StageState.SOAKING}
    short = evidence(*back, to_version=OLD, workloads_ready_before={"team-a/serve": 2}, workloads_ready_now={})

    idle, lacking = decided(restored(*nodes, **soaking)), decided(restored(*nodes, **soaking, evidence=short))

    assert plan_moves(idle) == [PlanState.ROLLED_BACK]
    assert "Nothing has tested the driver on b." in idle.waiting_for
    assert plan_moves(lacking) == []
    assert "0 of 2 GPU pods are Ready again." in lacking.waiting_for


def test_where_nothing_had_changed_it_is_over_at_once():
    decision = decided(restored(free(untouched(upgrade_state="upgrade-done"))))

    assert plan_moves(decision) == [PlanState.ROLLED_BACK]


def test_the_rollback_opens_by_itself():
    """Z32: the plan's approval covers its rollback."""
    for was, to in ((StageState.WAITING, StageState.OPENING), (StageState.OPENING, StageState.PROMOTING)):
        decision = decided(restored(moved("b"), back=(held_target("b"),), stage_state=was))
        assert decision.moves[0] == MoveStage(9, to, decision.moves[0].reason)


# What must not happen on the way


@pytest.mark.parametrize("what", ["stale_reason", "paused_reason", "stopped_reason"])
def test_no_wave_goes_back_while_something_says_stop(what: str):
    back = (held_target("b", state=TargetState.RELEASED), held_target("c"))
    snapshot = restored(free(moved("b")), moved("c"), back=back, max_unavailable=2, **{what: "Stop."})

    decision = decided(snapshot)

    assert decision.waiting_for == "Stop."
    assert not any(isinstance(act, ReleaseWave) for act in decision.acts)


def test_a_pause_calls_back_what_has_not_begun_in_the_rollback_too():
    """Z3."""
    back = (held_target("b", state=TargetState.RELEASED),)

    assert Recall(9, ("b",)) in decided(restored(free(moved("b")), back=back, paused_reason="Stop.")).acts


def test_a_pause_of_the_rollback_waits_for_no_other_target_that_moves():
    """Z3."""
    back = (held_target("b", state=TargetState.RELEASED), held_target("c", state=TargetState.RELEASING))
    snapshot = restored(free(moved("b")), free(moved("c")), back=back, max_unavailable=2, paused_reason="Stop.")

    decision = decided(snapshot)

    assert [move.name for move in decision.moves] == ["c"]
    assert decision.acts == (Recall(9, ("b", "c")),)


@BOTH
def test_an_old_snapshot_lets_nobody_go(state: PlanState):
    """Z25: what was never changed an hour ago may have changed since."""
    decision = decided(restored(untouched(upgrade_state="upgrade-done"), moved(), state=state, stale_reason="Old."))

    assert not decision.acts
    assert not decision.moves
    assert decision.waiting_for == "Old."


def test_a_node_that_waits_for_its_wave_is_held_again_when_somebody_frees_it():
    """Z5 (6): only our waves let it go."""
    freed = replace(moved("c"), has_label=False, label_is_ours=False)
    snapshot = restored(moved("b"), freed, back=(held_target("b"), held_target("c")))

    assert decided(snapshot).acts == (PlaceHolds({"uid-of-c": "c"}),)


def test_a_node_of_a_wave_is_not_held_again():
    for state in (TargetState.RELEASING, TargetState.RELEASED):
        snapshot = restored(free(moved("b")), back=(held_target("b", state=state),))
        assert not any(isinstance(act, PlaceHolds) for act in decided(snapshot).acts)


def test_a_release_back_that_was_recorded_and_not_done_is_done():
    node = replace(moved("b"), hold_wanted=False)

    assert decided(restored(node, back=(held_target("b", state=TargetState.RELEASING),))).acts == (
        FinishRelease(9, ("b",)),
    )


@BOTH
@pytest.mark.parametrize("state_label", ["cordon-required", "drain-required", "upgrade-failed", "uncordon-required"])
def test_it_is_not_over_while_an_unchanged_node_is_in_the_operators_hands(state: PlanState, state_label: str):
    """It still has its old driver and our label; the operator sets it free, and then so do we."""
    decision = decided(restored(untouched(upgrade_state=state_label), state=state))

    assert not decision.acts
    assert not decision.moves
    assert "a" in decision.waiting_for


def test_a_node_in_the_operators_hands_does_not_keep_the_others_waiting():
    snapshot = restored(untouched("a", upgrade_state="wait-for-jobs-required"), moved("b"), back=(held_target("b"),))

    assert isinstance(decided(snapshot).acts[0], ReleaseWave)


def test_a_node_of_a_later_daemonset_is_released_as_well():
    """Its template was not there when the plan was sealed: in sync, and on the old version, it is as before."""
    node = a_node_snapshot("new", upgrade_state="upgrade-done", pod_hash="hash-of-its-own")
    hashes = {DAEMONSET: OLD_HASH, "uid-of-a-later-one": "hash-of-its-own"}
    snapshot = restored(node, newest_hashes=hashes, pod_daemonsets={node.uid: "uid-of-a-later-one"})

    assert decided(snapshot).acts == (LiftHolds({"uid-of-new": "new"}),)


@BOTH
def test_a_foreign_version_is_not_overwritten(state: PlanState):
    """Z9."""
    decision = decided(still_written(untouched(), moved(), state=state, object_version="999.9.9"))

    assert not any(isinstance(act, WriteVersion) for act in decision.acts)
    assert not plan_moves(decision)


@BOTH
def test_a_label_of_somebody_else_stays(state: PlanState):
    foreign = untouched(upgrade_state="upgrade-done", label_is_ours=False, hold_is_foreign=True)

    decision = decided(restored(foreign, state=state))

    assert not decision.acts
    assert plan_moves(decision)


# Giving up, from each phase


def test_giving_up_before_the_version_was_written_frees_every_node():
    nodes = untouched("a", upgrade_state="upgrade-done"), free(untouched("b"))
    snapshot = still_written(*nodes, state=ABORTING)
    snapshot = with_facts(snapshot, write_intended=False, object_version=OLD, newest_hashes={DAEMONSET: OLD_HASH})

    assert decided(snapshot).acts == (LiftHolds({"uid-of-a": "a"}),)


def test_giving_up_frees_a_node_whose_label_the_rows_do_not_show_yet():
    """Z33: rows are late; what we wanted held may carry our label already, and must not keep it for ever."""
    just_wanted = replace(free(untouched("a", upgrade_state="upgrade-done")), hold_wanted=True)
    just_placed = replace(free(untouched("b", upgrade_state="upgrade-done")), label_was_placed=True)
    snapshot = still_written(just_wanted, just_placed, state=ABORTING)
    snapshot = with_facts(snapshot, write_intended=False, object_version=OLD, newest_hashes={DAEMONSET: OLD_HASH})

    decision = decided(snapshot)

    assert decision.acts == (LiftHolds({"uid-of-a": "a", "uid-of-b": "b"}),)
    assert not decision.moves


def test_a_plan_given_up_early_is_over_when_nobody_is_held():
    snapshot = still_written(free(untouched()), state=ABORTING)
    snapshot = with_facts(snapshot, write_intended=False, object_version=OLD, newest_hashes={DAEMONSET: OLD_HASH})

    assert plan_moves(decided(snapshot)) == [PlanState.ABORTED]


def test_a_plan_given_up_names_what_changed_and_keeps_it_held():
    snapshot = restored(free(untouched(upgrade_state="upgrade-done")), moved("b"), state=ABORTING)

    decision = decided(snapshot)

    assert plan_moves(decision) == [PlanState.ABORTED]
    assert "b changed or failed, and stays held" in decision.waiting_for
    assert not decision.acts


def test_a_plan_given_up_waits_for_what_the_operator_has_in_its_hands_and_holds_it():
    """It may come out with the new driver, or be queued again at once: neither was true of it when it was let go."""
    on_its_way = free(moved("b", upgrade_state="pod-restart-required"))

    first = decided(restored(on_its_way, state=ABORTING))
    then = decided(restored(replace(on_its_way, has_label=True, label_is_ours=True), state=ABORTING))

    assert first.acts == (PlaceHolds({"uid-of-b": "b"}),)
    assert (then.moves, then.waiting_for) == ((), "Waiting until the operator finishes b.")


def test_giving_up_the_rollback_holds_again_what_was_released():
    """Z3: abort re-holds what has not begun, in the rollback as well."""
    back = (held_target("b", state=TargetState.RELEASED),)

    assert decided(restored(free(moved("b")), back=back, state=ABORTING)).acts == (Recall(9, ("b",)),)


def test_a_rollback_first_calls_back_what_the_way_forward_had_let_go():
    """Z5: by the target's own state; rows may still show the label that was taken off."""
    forward = a_stage(held_target("a", state=TargetState.RELEASED), state=StageState.ABANDONED)
    snapshot = a_snapshot(forward, nodes=(untouched("a"),), state=ROLLING_BACK)

    assert decided(snapshot).acts == (Recall(0, ("a",)),)


@BOTH
def test_a_node_that_left_the_object_is_released_in_the_end(state: PlanState):
    """Nobody drives its upgrades any more, and our label would stay for ever."""
    left = untouched("left")

    decision = decided(replace(restored(state=state), unmanaged_nodes=(left,)))

    assert decision.acts == (ReleaseUnmanagedNodes({"uid-of-left": "left"}),)
    assert decision.is_for_good
    assert not decision.moves


@BOTH
def test_a_node_that_left_the_object_waits_until_the_version_is_back(state: PlanState):
    snapshot = replace(still_written(untouched(), state=state), unmanaged_nodes=(untouched("left"),))

    assert decided(snapshot).acts == (WriteVersion(NEW, OLD),)


def test_a_version_that_others_took_away_is_nothing_to_go_back_from():
    decision = decided(still_written(untouched(), state=PlanState.ROLLING_BACK, object_version=""))

    assert decision.waiting_for == "Somebody else set the version to nothing. Set it back, or abort."


@BOTH
def test_every_end_is_for_good_and_so_rests_on_the_nodes_as_they_are_now(state: PlanState):
    assert decided(restored(free(untouched()), state=state)).is_for_good


def test_a_plan_given_up_tells_the_nodes_that_stay_held_from_those_that_nobody_holds():
    """One that joined meanwhile has the new driver, and is the operator's to bring back."""
    joined = replace(free(moved("c")), hold_wanted=None)

    decision = decided(restored(moved("b"), joined, state=ABORTING))

    assert "b changed or failed, and stays held." in decision.waiting_for
    assert "c is neither restored nor held: the operator continues there." in decision.waiting_for


def made_anew(name: str = "b", **given: Any) -> NodeSnapshot:
    """Replaced under its name while armed, with our label on it: it took the new driver, and no row knows it."""
    return moved(name, **{"uid": f"uid-anew-of-{name}", "hold_wanted": None, "is_late_node": True} | given)


@BOTH
def test_a_node_made_anew_with_our_label_is_written_down_before_anything_ends(state: PlanState):
    decision = decide(put_back(a_snapshot(nodes=(made_anew(),)), state=state, is_live=True), now=NOON)

    assert decision.acts == (PlaceHolds({"uid-anew-of-b": "b"}),)
    assert decision.moves == ()


def test_a_node_made_anew_with_our_label_and_written_down_goes_back_in_a_wave():
    decision = decide(put_back(a_snapshot(nodes=(made_anew(hold_wanted=True),)), is_live=True), now=NOON)

    assert decision.acts == (OpenRollbackStage({"uid-anew-of-b": "b"}),)


def test_a_node_made_anew_that_another_plan_changes_is_left_to_it():
    theirs = made_anew(busy_with="plan-9")

    assert not theirs.is_unwritten


@BOTH
def test_an_end_names_who_is_held_by_somebody_else_with_the_new_driver(state: PlanState):
    theirs = moved(label_is_ours=False, hold_is_foreign=True)

    decision = decide(put_back(a_snapshot(nodes=(theirs,)), state=state, is_live=True), now=NOON)

    (end,) = decision.moves
    assert "b" in end.reason
    assert "every hold is gone" not in end.reason


def test_the_end_after_waves_names_who_is_held_by_somebody_else_with_the_new_driver():
    back = a_target("a", driver_version=OLD)
    free = a_node_snapshot("a", has_label=False, label_is_ours=False, hold_wanted=False, upgrade_state="upgrade-done")
    theirs = moved(label_is_ours=False, hold_is_foreign=True)
    stage = a_rollback_stage(back, state=StageState.SOAKING)

    decision = decide(put_back(a_snapshot(stage, nodes=(free, theirs)), is_live=True), now=NOON)

    assert decision.waiting_for == f"Every other node runs {OLD} again: b is held by somebody else, and not on {OLD}."


@pytest.mark.parametrize("state", ["", "upgrade-done", "pod-restart-required"])
def test_no_end_of_a_rollback_says_of_a_node_that_came_since_what_it_does_not_run(state: str):
    """It was never held, so that it is the operator's to bring there: out of any wave, and after the end."""
    came = replace(free(moved("c", upgrade_state=state)), hold_wanted=None)
    back, node = a_target("b", driver_version=OLD), free(untouched("b", upgrade_state="upgrade-done"))
    after_waves = a_snapshot(a_rollback_stage(back, state=StageState.SOAKING), nodes=(node, came))
    at_once = a_snapshot(nodes=(node, came))

    ends = [decide(put_back(snapshot, is_live=True), now=NOON) for snapshot in (after_waves, at_once)]

    says = f"c joined later, and is not on {OLD} yet"
    assert [end.waiting_for for end in ends] == [
        f"Every other node runs {OLD} again: {says}.",
        f"No node had changed: the old version is back and every hold is gone. {says}.",
    ]
    assert [plan_moves(end) for end in ends] == [[PlanState.ROLLED_BACK]] * 2


def test_no_end_says_of_a_node_whose_label_has_lost_its_mark_that_it_is_free():
    """Somebody took the annotation off beside it: not ours to take off any more, and it keeps the operator away."""
    kept = replace(free(untouched("a", upgrade_state="upgrade-done")), has_label=True)
    back, node = a_target("b", driver_version=OLD), free(untouched("b", upgrade_state="upgrade-done"))
    after_waves = a_snapshot(a_rollback_stage(back, state=StageState.SOAKING), nodes=(node, kept))
    at_once = a_snapshot(nodes=(node, kept))
    given_up = replace(put_back(at_once, is_live=True), state=PlanState.ABORTING)

    ends = [decide(put_back(snapshot, is_live=True), now=NOON) for snapshot in (after_waves, at_once)]
    ends.append(decide(given_up, now=NOON))

    says = "a keeps the label that held it, because somebody removed this plan's mark. Remove the label by hand"
    assert [end.waiting_for for end in ends] == [
        f"Every other node runs {OLD} again: {says}.",
        f"No node had changed: the old version is back and all holds of this plan are removed. {says}.",
        f"Given up. No node had changed. {says}.",
    ]


@BOTH
def test_a_place_is_kept_until_what_was_released_is_called_back(state: PlanState):
    released = a_held_target("a", state=TargetState.RELEASED)
    node = a_node_snapshot("a", has_label=False, label_is_ours=False, hold_wanted=False)
    snapshot = put_back(a_snapshot(a_stage(released), nodes=(node,), disruptions=frozenset({node.uid})), state=state)

    decision = decide(snapshot, now=NOON)

    assert decision.acts == (Recall(0, ("a",)),)
    assert decision.given_back == frozenset()
    held = replace(released, state=TargetState.HELD, state_since=NOON - timedelta(minutes=1))
    called_back = put_back(
        a_snapshot(a_stage(held), nodes=(untouched("a"),), disruptions=frozenset({node.uid})), state=state
    )
    assert decide(called_back, now=NOON).given_back == {node.uid}


def test_a_place_is_kept_while_the_daemonsets_are_made_anew():
    released = a_held_target("a", state=TargetState.RELEASED)
    gone = {"uid-of-a": "is no longer selected by NVIDIADriver default"}
    snapshot = a_snapshot(a_stage(released), newest_hashes={}, gone=gone, disruptions=frozenset(gone))

    assert decide(snapshot, now=NOON).given_back == frozenset()
    assert decide(with_facts(snapshot, newest_hashes={DAEMONSET: NEW_HASH}), now=NOON).given_back == {"uid-of-a"}
