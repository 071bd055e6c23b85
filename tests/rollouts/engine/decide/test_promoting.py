from dataclasses import replace
from datetime import timedelta

import pytest

from rollouts.components.driver import NO_AUTO_UPGRADE
from rollouts.engine.decide import decide
from rollouts.engine.decide.acts import (
    Decision,
    FinishRelease,
    LiftHolds,
    MovePlan,
    MoveStage,
    MoveTarget,
    PlaceHolds,
    Recall,
    ReleaseWave,
)
from rollouts.engine.snapshot import NodeSnapshot, Snapshot
from rollouts.gates.approval import ApprovalGate
from rollouts.gates.base import Answer, NextWave, PodWants, TargetEvidence, WindowEvidence
from rollouts.gates.driver_version import DriverVersion
from rollouts.gates.ecc import Ecc
from rollouts.gates.failure_budget import FailureBudget
from rollouts.gates.headroom import Headroom
from rollouts.gates.operands_ready import OperandsReady
from rollouts.gates.slo import Slo
from rollouts.gates.soak import Soak
from rollouts.gates.window import Window
from rollouts.gates.xid import Xid
from rollouts.lifecycle import PlanState, StageState, TargetState
from tests.make import NOON
from tests.rollouts.make import (
    NEW_HASH,
    OLD,
    a_changed_node,
    a_held_target,
    a_node_snapshot,
    a_policy,
    a_service_level,
    a_snapshot,
    a_stage,
    a_target,
    an_approval,
    evidence,
    with_facts,
)

WAITING, OPENING, SOAKING = StageState.WAITING, StageState.OPENING, StageState.SOAKING
PASSED, HALTED = StageState.PASSED, StageState.HALTED


def decided(snapshot: Snapshot) -> Decision:
    return decide(snapshot, now=NOON)


def plan_moves(decision: Decision) -> list[PlanState]:
    return [move.to for move in decision.moves if isinstance(move, MovePlan)]


def stage_moves(decision: Decision) -> list[tuple[int, StageState]]:
    return [(move.stage_index, move.to) for move in decision.moves if isinstance(move, MoveStage)]


def released(decision: Decision) -> tuple[str, ...]:
    return tuple(name for act in decision.acts if isinstance(act, ReleaseWave) for name in act.targets)


def held(*names: str) -> tuple[list[TargetEvidence], tuple[NodeSnapshot, ...]]:
    return [a_held_target(name) for name in names], tuple(a_node_snapshot(name) for name in names)


def released_node(name: str = "a", **given) -> NodeSnapshot:
    return a_node_snapshot(name, has_label=False, label_is_ours=False, hold_wanted=False, **given)


# Waves


@pytest.mark.parametrize(("ours", "operators", "expected"), [(1, 4, 1), (3, 4, 3), (4, 2, 2), (9, 9, 5)])
def test_a_wave_is_as_large_as_the_smaller_of_both_budgets(ours: int, operators: int, expected: int):
    """Z3."""
    targets, nodes = held("a", "b", "c", "d", "e")
    stage = a_stage(*targets, max_unavailable=ours)

    decision = decided(a_snapshot(stage, nodes=nodes, policy=a_policy(max_parallel=operators)))

    assert released(decision) == ("a", "b", "c", "d", "e")[:expected]


def test_the_next_wave_waits_until_the_last_one_is_back():
    targets = (a_target("a", is_ready=False), a_held_target("b"))
    nodes = (a_changed_node("a"), a_node_snapshot("b"))

    decision = decided(a_snapshot(a_stage(*targets), nodes=nodes))

    assert not decision.acts
    assert "1 node must still change" in decision.waiting_for
    assert "not yet healthy again" in decision.waiting_for


def test_a_node_that_the_operator_has_not_begun_with_is_waited_for_by_its_clock():
    target = a_held_target("a", state=TargetState.RELEASED)

    decision = decided(a_snapshot(a_stage(target), nodes=(released_node("a"),)))

    assert decision.waiting_for.endswith("1 node is on the way; the operator checks again within two minutes.")


@pytest.mark.parametrize(
    ("states", "says"),
    [
        (("changed", "changed"), "Every target has changed."),
        (("changed", "failed"), "No target is left to release: 1 changed, 1 failed."),
        (("excluded", "excluded"), "Every target was excluded."),
    ],
)
def test_why_a_stage_has_nobody_to_let_go(states, says):
    targets = [a_target(name, state=TargetState(state)) for name, state in zip("ab", states, strict=True)]
    stage = a_stage(*targets, gates=(FailureBudget(tolerate=1),))

    nodes = [
        (a_changed_node if state == "changed" else a_node_snapshot)(name)
        for name, state in zip("ab", states, strict=True)
    ]
    (move,) = decided(a_snapshot(stage, nodes=tuple(nodes))).moves

    assert (move.to, move.reason) == (SOAKING, says)


def test_the_order_of_release_is_the_targets():
    targets, nodes = held("z", "a")

    assert released(decided(a_snapshot(a_stage(*targets), nodes=nodes))) == ("z",)


def test_a_node_that_others_cordoned_is_never_released():
    """Z6: the operator would take it at once, past its own slots."""
    targets, _ = held("a", "b")
    nodes = (a_node_snapshot("a", is_unschedulable=True), a_node_snapshot("b"))

    decision = decided(a_snapshot(a_stage(*targets, max_unavailable=2), nodes=nodes))

    assert released(decision) == ("b",)


def test_a_stage_whose_last_node_is_cordoned_says_so():
    """Z6."""
    targets, _ = held("a")
    snapshot = a_snapshot(a_stage(*targets, max_unavailable=2), nodes=(a_node_snapshot("a", is_unschedulable=True),))

    assert "a is cordoned by somebody else" in decided(snapshot).waiting_for


def test_a_label_that_is_not_ours_is_never_taken_off():
    targets, _ = held("a")
    snapshot = a_snapshot(a_stage(*targets), nodes=(a_node_snapshot("a", hold_is_foreign=True, label_is_ours=False),))

    assert not decided(snapshot).acts


def test_a_node_that_is_not_seen_is_not_let_go():
    snapshot = a_snapshot(a_stage(a_held_target("a", is_seen=False)), nodes=(a_node_snapshot("a"),))

    assert not released(decided(snapshot))


def test_a_release_that_was_recorded_and_not_done_is_done():
    snapshot = a_snapshot(a_stage(a_held_target("a", state=TargetState.RELEASING)), nodes=(a_node_snapshot("a"),))

    assert decided(snapshot).acts == (FinishRelease(0, ("a",)),)


# What stops it


def test_an_old_snapshot_lets_nothing_go_and_nothing_pass():
    """Z25."""
    targets, nodes = held("a")
    stale = {"stale_reason": "Not seen since noon."}
    soaking = a_stage(a_target("a"), state=SOAKING)

    for snapshot in (
        a_snapshot(a_stage(*targets), nodes=nodes, **stale),
        a_snapshot(soaking, nodes=(a_changed_node("a"),), **stale),
    ):
        decision = decided(snapshot)
        assert not decision.acts
        assert not decision.moves
        assert decision.waiting_for == "Not seen since noon."


@pytest.mark.parametrize("blocked", ["paused_reason", "stopped_reason"])
@pytest.mark.parametrize("state", [TargetState.RELEASING, TargetState.RELEASED])
def test_a_pause_and_the_stop_switch_call_back_what_has_not_begun(blocked: str, state: TargetState):
    """Z3, Z33."""
    node = released_node("a") if state is TargetState.RELEASED else a_node_snapshot("a", hold_wanted=False)
    targets = (a_held_target("a", state=state), a_held_target("b"))
    snapshot = a_snapshot(
        a_stage(*targets, max_unavailable=5), nodes=(node, a_node_snapshot("b")), **{blocked: "Stop."}
    )

    decision = decided(snapshot)

    assert decision.acts == (Recall(0, ("a",)),)
    assert decision.waiting_for == "Stop."


def test_what_has_begun_cannot_be_called_back():
    """Z3."""
    target = a_held_target("a", state=TargetState.RELEASED)
    snapshot = a_snapshot(
        a_stage(target), nodes=(released_node("a", upgrade_state="drain-required"),), state=PlanState.HALTED
    )

    assert not any(isinstance(act, Recall) for act in decided(snapshot).acts)


@pytest.mark.parametrize("given", [{"state": PlanState.HALTED}, {"paused_reason": "Stop."}], ids=["halt", "pause"])
def test_a_target_that_was_seen_to_move_does_not_keep_others_from_being_called_back(given: dict):
    """Z3: right after a wave some move in every round."""
    targets = (a_held_target("a", state=TargetState.RELEASED), a_held_target("b", state=TargetState.RELEASING))
    snapshot = a_snapshot(a_stage(*targets, max_unavailable=5), nodes=(released_node("a"), released_node("b")), **given)

    decision = decided(snapshot)

    assert decision.moves == (MoveTarget(0, "uid-of-b", "b", TargetState.RELEASED, "The hold is gone."),)
    assert decision.acts == (Recall(0, ("a", "b")),)


@pytest.mark.parametrize("given", [{"state": PlanState.HALTED}, {"paused_reason": "Stop."}], ids=["halt", "pause"])
def test_a_late_node_that_cannot_be_held_does_not_keep_others_from_being_called_back(given: dict):
    """Z3 and Z4 at once: one node whose label cannot be written must not cost another its recall."""
    late_node = a_node_snapshot("new", has_label=False, label_is_ours=False, hold_wanted=None)
    snapshot = a_snapshot(
        a_stage(a_held_target("a", state=TargetState.RELEASED)), nodes=(released_node("a"), late_node), **given
    )

    decision = decided(snapshot)

    assert Recall(0, ("a",)) in decision.acts
    assert PlaceHolds({"uid-of-new": "new"}) in decision.acts


def test_a_halted_plan_lets_nothing_go():
    targets, nodes = held("a", "b")
    snapshot = a_snapshot(a_stage(*targets, state=HALTED), nodes=nodes, state=PlanState.HALTED)

    assert not decided(snapshot).acts


def test_a_halted_plan_still_follows_what_is_under_way():
    target = a_held_target("a", state=TargetState.CHANGING)
    snapshot = a_snapshot(a_stage(target, state=HALTED), nodes=(a_changed_node("a"),), state=PlanState.HALTED)

    assert [move.to for move in decided(snapshot).moves] == [TargetState.CHANGED]


def test_a_late_node_is_held_before_anything_else_goes():
    """Z4."""
    targets, nodes = held("a")
    late_node = a_node_snapshot("new", has_label=False, label_is_ours=False, hold_wanted=None, upgrade_state="")

    decision = decided(a_snapshot(a_stage(*targets), nodes=(*nodes, late_node)))

    assert decision.acts == (PlaceHolds({"uid-of-new": "new"}),)


def test_a_hold_that_somebody_took_off_is_put_back():
    targets, nodes = held("a")
    freed = a_node_snapshot("b", has_label=False, label_is_ours=False)

    assert decided(a_snapshot(a_stage(*targets), nodes=(*nodes, freed))).acts == (PlaceHolds({"uid-of-b": "b"}),)


# What halts it


@pytest.mark.parametrize(
    "escaped",
    [
        a_node_snapshot("x", upgrade_state="pod-restart-required"),
        a_node_snapshot("x", pod_hash=NEW_HASH),
        a_changed_node("x", has_label=True, hold_wanted=True),
    ],
    ids=["at-work", "new-pod", "changed"],
)
@pytest.mark.parametrize("is_target", [True, False])
def test_a_held_node_that_changes_halts_the_plan(escaped: NodeSnapshot, is_target: bool):
    """Z4: also one that is no target of any stage, which nobody else watches."""
    targets = (a_held_target("a"), *([a_held_target("x")] if is_target else []))

    decision = decided(a_snapshot(a_stage(*targets), nodes=(a_node_snapshot("a"), escaped)))

    assert plan_moves(decision) == [PlanState.HALTED]
    assert stage_moves(decision) == [(0, HALTED)]
    assert not decision.acts
    assert "x" in decision.waiting_for


def test_whose_hold_somebody_took_off_did_not_change_although_held():
    freed = a_node_snapshot("x", upgrade_state="drain-required", has_label=False, label_is_ours=False)
    held = a_node_snapshot("y", pod_hash=NEW_HASH)
    held_again = a_node_snapshot("z", upgrade_state="drain-required", was_held_again=True)

    decision = decided(a_snapshot(a_stage(a_held_target("a")), nodes=(a_node_snapshot("a"), freed, held, held_again)))

    assert decision.waiting_for == (
        "x began to load the new driver: somebody removed its hold. z began to load the new driver: somebody had "
        "removed its hold for a while. y began to load the new driver although held."
    )


def test_a_late_node_that_starts_on_the_new_driver_has_not_escaped():
    """Z4: its first driver pod is of the new template, whatever its label says."""
    late_node = a_changed_node("new", has_label=True, label_is_ours=True, hold_wanted=True, is_late_node=True)
    targets, nodes = held("a")

    assert not plan_moves(decided(a_snapshot(a_stage(*targets), nodes=(*nodes, late_node))))


def test_a_late_node_on_the_new_driver_is_released_before_the_end():
    late_node = a_changed_node("new", has_label=True, label_is_ours=True, hold_wanted=True, is_late_node=True)
    passed = a_stage(a_target("a", state=TargetState.CHANGED), state=PASSED)

    decision = decided(a_snapshot(passed, nodes=(a_changed_node("a"), late_node)))

    assert decision.acts == (LiftHolds({"uid-of-new": "new"}),)
    assert not plan_moves(decision)


def test_a_label_held_by_others_is_not_watched_by_us():
    foreign = a_node_snapshot("x", hold_is_foreign=True, label_is_ours=False, pod_hash=NEW_HASH)
    targets, nodes = held("a")

    assert not plan_moves(decided(a_snapshot(a_stage(*targets), nodes=(*nodes, foreign))))


def test_a_failed_node_that_a_person_excluded_does_not_halt_again():
    """It was let go, and failed: that it is out of the stage makes it no escape."""
    failed = released_node("x", upgrade_state="upgrade-failed", pod_hash=NEW_HASH)
    targets = (a_held_target("a"), a_target("x", state=TargetState.EXCLUDED, upgrade_state="upgrade-failed"))
    nodes = (a_node_snapshot("a"), failed)
    snapshot = a_snapshot(a_stage(*targets, max_unavailable=2, gates=(FailureBudget(),)), nodes=nodes)

    decision = decided(snapshot)

    assert not plan_moves(decision)


def test_a_failing_gate_halts_in_the_canary():
    """What fails in the canary goes no further."""
    canary = a_stage(a_target("a", driver_version=OLD), index=0)
    targets, nodes = held("b", "c")
    snapshot = a_snapshot(canary, a_stage(*targets, index=1, state=WAITING), nodes=(a_changed_node("a"), *nodes))

    decision = decided(snapshot)

    assert plan_moves(decision) == [PlanState.HALTED]
    assert stage_moves(decision) == [(0, HALTED)]
    assert not decision.acts
    assert decision.results[0]["driver_version"].answer is Answer.FAIL


def test_a_failed_node_with_its_cause_halts_before_what_other_gates_say_of_it():
    target = a_target("a", state=TargetState.FAILED, failed_reason="Its pod cannot go.")
    stage = a_stage(target, a_target("b", driver_version=OLD), gates=(DriverVersion(), FailureBudget()), state=SOAKING)

    decision = decided(a_snapshot(stage, nodes=(a_node_snapshot("a"), a_changed_node("b"))))

    assert decision.waiting_for == "a failed. Its pod cannot go."


def test_a_failing_gate_halts_in_the_middle_of_a_wave_too():
    targets = (a_target("a", state=TargetState.FAILED), a_held_target("b"))
    snapshot = a_snapshot(
        a_stage(*targets, gates=(FailureBudget(),), max_unavailable=5),
        nodes=(a_changed_node("a"), a_node_snapshot("b")),
    )

    decision = decided(snapshot)

    assert plan_moves(decision) == [PlanState.HALTED]
    assert not decision.acts


@pytest.mark.parametrize("version", [OLD, "999.9.9", ""])
def test_a_version_that_somebody_else_wrote_halts(version: str):
    """Z9."""
    targets, nodes = held("a")

    decision = decided(a_snapshot(a_stage(*targets), nodes=nodes, object_version=version))

    assert plan_moves(decision) == [PlanState.HALTED]
    assert not decision.acts


def test_a_gate_that_turns_while_the_next_stage_waits_halts_the_stage_that_had_passed():
    earlier = a_stage(a_target("a", driver_version=OLD), state=PASSED)
    targets, nodes = held("b")
    later = a_stage(*targets, index=1, state=OPENING, gates=(ApprovalGate(), DriverVersion()))

    decision = decided(a_snapshot(earlier, later, nodes=(a_changed_node("a"), *nodes)))

    assert stage_moves(decision) == [(0, HALTED)]
    assert plan_moves(decision) == [PlanState.HALTED]


# From stage to stage


def test_a_stage_opens_when_it_is_its_turn():
    targets, nodes = held("b")
    stages = (a_stage(a_target("a"), state=PASSED), a_stage(*targets, index=1, state=WAITING))

    assert stage_moves(decided(a_snapshot(*stages, nodes=(a_changed_node("a"), *nodes)))) == [(1, OPENING)]


def opening(*approvals, earlier: TargetEvidence | None = None) -> Snapshot:
    first = a_stage(earlier or a_target("a"), state=PASSED)
    target = a_held_target("b")
    shown = evidence(target, approvals=approvals)
    second = a_stage(target, index=1, state=OPENING, gates=(ApprovalGate(), DriverVersion()), evidence=shown)
    return a_snapshot(first, second, nodes=(a_changed_node("a"), a_node_snapshot("b")))


def test_an_opening_stage_waits_for_its_approval():
    assert not decided(opening()).moves
    assert stage_moves(decided(opening(an_approval()))) == [(1, StageState.PROMOTING)]


def test_an_opening_stage_waits_while_the_one_before_is_no_longer_sure():
    decision = decided(opening(an_approval(), earlier=a_target("a", driver_version="")))

    assert not stage_moves(decision)
    assert "a gate of Stage 0 no longer passes" in decision.waiting_for
    assert not decision.pause_reason


def test_a_person_is_asked_once_the_one_before_has_been_unsure_for_longer_than_its_wait_timeout():
    snapshot = opening(an_approval(), earlier=a_target("a", driver_version=""))
    passed, second, *others = snapshot.stages
    passed = replace(passed, state_since=NOON - timedelta(hours=3))
    hour_ago = replace(passed, waiting_since={"driver_version": NOON - timedelta(hours=1, seconds=1)})
    just_now = replace(passed, waiting_since={"driver_version": NOON - timedelta(minutes=59)})

    asks = decided(replace(snapshot, stages=(hour_ago, second, *others))).pause_reason

    assert asks.startswith("Stage 1 waits: a gate of Stage 0 no longer passes. a reports no driver version.")
    assert "It has waited for 1 h: a person decides" in asks
    assert not decided(replace(snapshot, stages=(just_now, second, *others))).pause_reason


def test_a_rejection_halts():
    decision = decided(opening(an_approval(is_rejection=True, reason="No.")))

    assert plan_moves(decision) == [PlanState.HALTED]


def test_a_stage_soaks_once_every_target_has_changed():
    snapshot = a_snapshot(a_stage(a_target("a")), nodes=(a_changed_node("a"),))

    assert stage_moves(decided(snapshot)) == [(0, SOAKING)]


def test_a_stage_does_not_soak_while_a_target_is_on_its_way():
    target = a_held_target("a", state=TargetState.CHANGING)
    snapshot = a_snapshot(a_stage(target), nodes=(released_node("a", upgrade_state="drain-required"),))

    assert not stage_moves(decided(snapshot))


def test_a_stage_passes_when_every_gate_does():
    snapshot = a_snapshot(a_stage(a_target("a"), state=SOAKING), nodes=(a_changed_node("a"),))

    assert stage_moves(decided(snapshot)) == [(0, PASSED)]


def test_a_stage_soaks_on_while_one_gate_holds():
    gates = (DriverVersion(), Soak(timedelta(minutes=30)))
    snapshot = a_snapshot(a_stage(a_target("a"), state=SOAKING, gates=gates), nodes=(a_changed_node("a"),))

    assert not decided(snapshot).moves


@pytest.mark.parametrize("gates", [(), (ApprovalGate(),)], ids=["none", "approval-only"])
def test_a_stage_without_a_gate_never_passes(gates: tuple):
    snapshot = a_snapshot(a_stage(a_target("a"), state=SOAKING, gates=gates), nodes=(a_changed_node("a"),))

    decision = decided(snapshot)

    assert not decision.moves
    assert "no gate" in decision.waiting_for


@pytest.mark.parametrize(("minutes", "asks"), [(3, False), (5, True)])
def test_a_gate_that_waits_for_too_long_asks_a_person(minutes: int, asks: bool):
    """No answer is never a pass: out of wait timeout, the plan pauses and asks."""
    stage = a_stage(
        a_target("a", baseline=None),
        gates=(OperandsReady(),),
        state=SOAKING,
        state_since=NOON - timedelta(minutes=minutes),
        wait_timeout=timedelta(minutes=4),
    )

    decision = decided(a_snapshot(stage, nodes=(a_changed_node("a"),)))

    assert bool(decision.pause_reason) is asks
    assert not decision.moves


def test_gates_that_wait_for_the_same_reason_give_it_once():
    stage = a_stage(a_target("a"), state=SOAKING, gates=(Xid(), Ecc()))

    assert decided(a_snapshot(stage, nodes=(a_changed_node("a"),))).waiting_for == (
        "Stage 0: The findings of a are not evaluated yet. The rules run again 2 min after the change. "
        "2 gates wait for it: Xids, ECC errors."
    )


@pytest.mark.parametrize(("seconds", "asks"), [(29, False), (31, True)])
def test_a_gate_with_a_wait_timeout_of_its_own_asks_after_it(seconds: int, asks: bool):
    """Its stage would have waited for an hour; another gate that waits first has not kept it from asking."""
    gates = (DriverVersion(), OperandsReady(wait_timeout=timedelta(seconds=30)))
    since = NOON - timedelta(seconds=seconds)
    stage = a_stage(a_target("a", baseline=None, driver_version=""), gates=gates, state=SOAKING, state_since=since)

    decision = decided(a_snapshot(stage, nodes=(a_changed_node("a"),)))

    assert bool(decision.pause_reason) is asks
    assert not asks or "It has waited for 30 s" in decision.pause_reason


def test_wait_timeout_begins_when_the_gate_begins_to_wait():
    """One that passed through an hour of soak, and waits now, is not out of wait timeout at once."""
    long_ago = {"state": SOAKING, "state_since": NOON - timedelta(hours=2), "gates": (OperandsReady(),)}
    stage = a_stage(a_target("a", baseline=None), **long_ago, waiting_since={"operands_ready": NOON})

    assert not decided(a_snapshot(stage, nodes=(a_changed_node("a"),))).pause_reason


@pytest.mark.parametrize(
    ("minutes", "waits_again", "asks"),
    [(150, True, False), (151, True, True), (151, False, False)],
    ids=["within the limit", "beyond it", "beyond it, while only the soak runs"],
)
def test_gates_that_pass_and_wait_in_turn_ask_once_they_exceed_the_limit_of_the_soak(
    minutes: int, waits_again: bool, asks: bool
):
    """Each pass restarts the time of the gate, each wait restarts the soak: neither alone would ever ask."""
    target = a_target("a", driver_version="" if waits_again else "new")
    gates = (DriverVersion(), Soak(timedelta(minutes=30)))
    stage = a_stage(target, gates=gates, state=SOAKING, state_since=NOON - timedelta(minutes=minutes))
    stage = replace(stage, waiting_since=dict.fromkeys(("driver_version", "soak"), NOON))
    if not waits_again:
        stage = replace(stage, evidence=replace(stage.evidence, others_passing_since=NOON - timedelta(minutes=1)))

    decision = decided(a_snapshot(stage, nodes=(a_changed_node("a"),)))

    assert bool(decision.pause_reason) is asks
    assert not asks or "has not passed within 2 h 30 min: a person decides" in decision.pause_reason


def test_an_approval_is_waited_for_as_long_as_it_takes():
    stage = a_stage(
        a_held_target("a"), state=OPENING, gates=(ApprovalGate(), DriverVersion()), state_since=NOON - timedelta(days=3)
    )

    decision = decided(a_snapshot(stage, nodes=(a_node_snapshot("a"),)))

    assert "approval" in decision.waiting_for
    assert not decision.pause_reason


def test_what_is_only_advisory_neither_halts_nor_holds():
    """It is asked and its answer stored, while the stage passes on the gates that count."""
    gates = (DriverVersion(), OperandsReady(advisory=True), FailureBudget(advisory=True))
    stage = a_stage(a_target("a", is_ready=False, operands=()), gates=gates, state=SOAKING)

    decision = decided(a_snapshot(stage, nodes=(a_changed_node("a"),)))

    assert {key: one.answer for key, one in decision.results[0].items()} == {
        "driver_version": Answer.PASS,
        "operands_ready": Answer.WAIT,
        "failure_budget": Answer.FAIL,
    }
    assert stage_moves(decision) == [(0, PASSED)]


def test_a_stage_whose_gates_are_all_advisory_never_passes():
    stage = a_stage(a_target("a"), gates=(DriverVersion(advisory=True),), state=SOAKING)

    decision = decided(a_snapshot(stage, nodes=(a_changed_node("a"),)))

    assert not decision.moves
    assert "no gate that counts" in decision.waiting_for


def a_next_wave(*, free: int) -> NextWave:
    wants = PodWants("team-a/x", "H100", {"nvidia.com/gpu": 8})
    return NextWave(("b",), (wants,), {"H100": ({"nvidia.com/gpu": free},)})


@pytest.mark.parametrize(("free", "goes"), [(7, ()), (8, ("b",))])
def test_a_gate_of_each_wave_holds_the_next_one_only(free: int, goes: tuple[str, ...]):
    """Z13. The canary has gone; what follows it waits for room, and nothing halts."""
    targets = (a_target("a"), a_held_target("b"))
    shown = evidence(*targets, next_wave=a_next_wave(free=free))
    stage = a_stage(*targets, evidence=shown, gates=(Headroom(), DriverVersion()))

    decision = decided(a_snapshot(stage, nodes=(a_changed_node("a"), a_node_snapshot("b"))))

    assert released(decision) == goes
    assert not decision.moves
    assert goes or "fits on no other node" in decision.waiting_for
    assert "headroom" in decision.results[0]


@pytest.mark.parametrize(("value", "goes"), [(0.4, ("b",)), (0.9, ())])
def test_a_difference_that_may_be_chance_holds_the_next_wave(value: float, goes: tuple[str, ...]):
    """Later nodes wait until the sequential test of the service level excludes chance or the difference ends."""
    targets = (a_target("a", state_since=NOON - timedelta(minutes=10)), a_held_target("b"))
    shown = evidence(*targets, service_level=a_service_level("a", value=value))
    stage = a_stage(*targets, evidence=shown, gates=(Slo(), DriverVersion()))

    decision = decided(a_snapshot(stage, nodes=(a_changed_node("a"), a_node_snapshot("b"))))

    assert released(decision) == goes
    assert not decision.moves
    assert goes or "may be worse than before" in decision.waiting_for


def test_a_gate_of_each_wave_holds_the_first_one_too_and_asks_in_the_end():
    shown = evidence(a_held_target("b"), next_wave=a_next_wave(free=0))
    given = {
        "evidence": shown,
        "gates": (Headroom(wait_timeout=timedelta(minutes=2)), DriverVersion()),
        "state": OPENING,
    }
    stage = a_stage(a_held_target("b"), **given)

    decision = decided(a_snapshot(stage, nodes=(a_node_snapshot("b"),)))

    assert not decision.moves
    assert "It has waited for 2 min" in decision.pause_reason


def waits_for_windows(*windows: WindowEvidence, **given) -> Decision:
    shown = evidence(a_held_target("b"), windows=windows)
    long_ago = {"wait_timeout": timedelta(minutes=1), "state_since": NOON - timedelta(days=2)}
    stage = a_stage(evidence=shown, gates=(Window(**given), DriverVersion()), state=OPENING, **long_ago)
    return decided(a_snapshot(stage, nodes=(a_node_snapshot("b"),)))


def test_a_window_is_not_out_of_wait_timeout_while_it_is_known_when_it_opens():
    ahead = (NOON + timedelta(days=3), NOON + timedelta(days=4))
    ends = (NOON - timedelta(hours=5), NOON + timedelta(minutes=5))

    shut = waits_for_windows(WindowEvidence(("b",), "Closed until Sunday.", (ahead,)))
    ending = waits_for_windows(
        WindowEvidence(("b",), "Open for 5 min.", (ends, ahead)), must_last=timedelta(minutes=10)
    )

    assert (shut.waiting_for, shut.moves, shut.pause_reason) == (
        "Stage 0: The maintenance window is closed. Closed until Sunday.",
        (),
        "",
    )
    assert (ending.moves, ending.pause_reason) == ((), "")


@pytest.mark.parametrize("given", [{"advisory": True}, {}], ids=["advisory", "counted"])
def test_what_goes_before_each_wave_is_not_asked_about_while_none_goes(given):
    """Which nodes would go next is not known while every one of them waits for its window."""
    ahead = (NOON + timedelta(days=3), NOON + timedelta(days=4))
    shown = evidence(a_held_target("b"), windows=(WindowEvidence(("b",), "Closed until Sunday.", (ahead,)),))
    long_ago = {"wait_timeout": timedelta(minutes=1), "state_since": NOON - timedelta(days=2)}
    stage = a_stage(evidence=shown, gates=(Window(**given), Headroom()), state=OPENING, **long_ago)

    asks = decided(a_snapshot(stage, nodes=(a_node_snapshot("b"),))).pause_reason

    assert bool(asks) is bool(given)


@pytest.mark.parametrize("reason", ["Pool north/h200 is frozen by ada: Quarter end.", ""], ids=["bound", "unseen"])
def test_nobody_is_asked_about_room_while_a_freeze_or_a_window_keeps_every_node(reason):
    """Without the gate `window`, too: who would find room has no node to find it for."""
    shown = evidence(a_held_target("b"), bound_reason=reason)
    long_ago = {"wait_timeout": timedelta(minutes=1), "state_since": NOON - timedelta(days=2)}
    stage = a_stage(evidence=shown, gates=(Headroom(), DriverVersion()), state=OPENING, **long_ago)

    decision = decided(a_snapshot(stage, nodes=(a_node_snapshot("b"),)))

    assert bool(decision.pause_reason) is not bool(reason)
    if reason:
        assert decision.waiting_for == f"Stage 0: No node can be released now. {reason}"


def test_a_window_that_is_not_there_is_asked_about_in_the_end():
    """Nothing that is still to come opens it: a person has to make one."""
    assert "No maintenance window covers b" in waits_for_windows(WindowEvidence(("b",))).pause_reason
    assert "no more" in waits_for_windows(WindowEvidence(("b",), "It opens no more.", ())).pause_reason


def test_a_gate_of_each_wave_does_not_keep_a_stage_from_passing():
    gates = (Headroom(), DriverVersion())
    stage = a_stage(a_target("a"), gates=gates, state=SOAKING)

    assert stage_moves(decided(a_snapshot(stage, nodes=(a_changed_node("a"),)))) == [(0, PASSED)]


def test_a_soak_is_not_out_of_wait_timeout():
    gates = (DriverVersion(), Soak(timedelta(hours=9)))
    stage = a_stage(
        a_target("a"),
        state=SOAKING,
        gates=gates,
        wait_timeout=timedelta(minutes=1),
        state_since=NOON - timedelta(hours=2),
    )
    shown = replace(stage.evidence, others_passing_since=NOON - timedelta(hours=1))
    snapshot = a_snapshot(replace(stage, evidence=shown), nodes=(a_changed_node("a"),))

    assert not decided(snapshot).pause_reason


def test_the_plan_is_promoted_when_every_stage_has_passed():
    stages = (a_stage(a_target("a"), state=PASSED), a_stage(a_target("b"), index=1, state=PASSED))

    decision = decided(a_snapshot(*stages, nodes=(a_changed_node("a"), a_changed_node("b"))))

    assert plan_moves(decision) == [PlanState.PROMOTED]


def test_a_node_that_was_called_back_too_late_is_released_before_the_plan_ends():
    """Held again in the moment the operator began: the label stopped nothing, and would stay for ever (hazard Z3)."""
    stages = (a_stage(a_target("a"), a_target("b"), state=PASSED),)
    late = replace(a_changed_node("a"), has_label=True, label_is_ours=True, hold_wanted=True)

    decision = decided(a_snapshot(*stages, nodes=(late, a_changed_node("b"))))

    assert plan_moves(decision) == []
    assert [act.nodes for act in decision.acts if isinstance(act, LiftHolds)] == [{late.uid: "a"}]


def test_a_halt_calls_back_what_has_not_begun_in_the_same_round():
    """Z3."""
    snapshot = a_snapshot(
        a_stage(
            a_target("a", state=TargetState.FAILED, upgrade_state="upgrade-failed"),
            a_held_target("b", state=TargetState.RELEASED),
            gates=(FailureBudget(),),
            max_unavailable=2,
        ),
        nodes=(
            a_changed_node("a", upgrade_state="upgrade-failed"),
            a_node_snapshot("b", has_label=False, hold_wanted=False),
        ),
    )

    decision = decided(snapshot)

    assert plan_moves(decision) == [PlanState.HALTED]
    assert decision.acts == (Recall(0, ("b",)),)


def test_nothing_is_released_while_the_operator_is_switched_off():
    """Z2: without autoUpgrade the states are gone, and a node that is let go changes unwatched."""
    snapshot = a_snapshot(a_stage(a_held_target()), nodes=(a_node_snapshot(),), policy=a_policy(off=NO_AUTO_UPGRADE))

    decision = decided(snapshot)

    assert not decision.acts
    assert decision.waiting_for == (
        "autoUpgrade is off: the operator changes no node and restores no node. Switch it on."
    )


def test_a_node_that_the_operator_ignores_is_shown_to_a_person():
    long_ago = NOON - timedelta(hours=2)
    released = a_held_target(state=TargetState.RELEASED, state_since=long_ago)
    node = a_node_snapshot(has_label=False, hold_wanted=False)

    decision = decided(a_snapshot(a_stage(released), nodes=(node,)))

    assert "has not begun to change node-1" in decision.pause_reason
    assert decision.pause_reason.endswith("Check the operator's log and slots, then resume.")


def test_a_node_that_the_operator_ignores_since_it_is_down_is_shown_as_such():
    released = a_held_target(state=TargetState.RELEASED, state_since=NOON - timedelta(hours=2))
    node = a_node_snapshot(has_label=False, hold_wanted=False)

    down = "The GPU operator does not run."
    decision = decided(a_snapshot(a_stage(released), nodes=(node,), operator_down=down))

    assert decision.pause_reason.endswith(f"for 1 h. {down}")


def test_an_armed_fleet_is_brought_before_a_person_in_time():
    """Z4: limited."""
    snapshot = a_snapshot(a_stage(a_held_target()), nodes=(a_node_snapshot(),))
    long_armed = with_facts(snapshot, armed_since=NOON - timedelta(days=8))

    decision = decided(long_armed)

    assert "armed for 7 d" in decision.pause_reason
    assert not decision.acts
    assert decided(snapshot).acts


# Completed without some


def test_a_plan_that_left_nodes_out_says_so_when_it_ends():
    out = TargetState.EXCLUDED
    stage = a_stage(a_target("a"), a_target("b", state=out), a_held_target("c", state=out), state=PASSED)
    nodes = (a_changed_node("a"), released_node("b", upgrade_state="upgrade-failed"), a_node_snapshot("c"))

    decision = decided(a_snapshot(stage, nodes=nodes))

    assert plan_moves(decision) == [PlanState.PROMOTED]
    assert decision.waiting_for == (
        "Promoted, except 2 nodes. b was excluded and is not held. c stays held with the present driver "
        "(docs/takeover.md)."
    )


def test_a_label_that_has_lost_the_plans_mark_is_no_free_node_at_the_end():
    out = a_held_target("b", state=TargetState.EXCLUDED)
    node = a_node_snapshot("b", label_is_ours=False, hold_wanted=False)

    decision = decided(a_snapshot(a_stage(a_target("a"), out, state=PASSED), nodes=(a_changed_node("a"), node)))

    assert decision.waiting_for == (
        "Promoted, except 1 node. b stays held with the present driver (docs/takeover.md). b keeps the label "
        "that held it, because somebody removed this plan's mark. Remove the label by hand."
    )


def test_a_stage_that_the_plan_was_completed_without_is_waited_for_no_more():
    """The end rests on the stage before it."""
    first = a_stage(a_target("a"), state=PASSED)
    second = a_stage(a_target("b", state=TargetState.EXCLUDED), index=1, state=StageState.ABANDONED)
    nodes = (a_changed_node("a"), a_node_snapshot("b"))

    decision = decided(a_snapshot(first, second, nodes=nodes))

    assert plan_moves(decision) == [PlanState.PROMOTED]
    assert decision.results[0]["driver_version"].answer is Answer.PASS


def test_an_escape_halts_a_plan_that_was_completed_without_its_last_stage():
    first = a_stage(a_target("a"), state=PASSED)
    second = a_stage(a_target("b", state=TargetState.EXCLUDED), index=1, state=StageState.ABANDONED)
    nodes = (a_changed_node("a"), a_node_snapshot("b", pod_hash=NEW_HASH))

    decision = decided(a_snapshot(first, second, nodes=nodes))

    assert plan_moves(decision) == [PlanState.HALTED]
    assert stage_moves(decision) == []


def test_a_node_made_anew_with_our_label_is_written_down():
    anew = a_node_snapshot("b", uid="uid-anew-of-b", hold_wanted=None, is_late_node=True)

    decision = decide(a_snapshot(a_stage(a_held_target("a")), nodes=(a_node_snapshot("a"), anew)), now=NOON)

    assert decision.acts == (PlaceHolds({"uid-anew-of-b": "b"}),)
