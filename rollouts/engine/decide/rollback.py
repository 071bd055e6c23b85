"""The rollback, in the one order that harms no node (Z5). Pure.

1. Hold every node of the object, also moved and failed ones. 2. Restore the version. 3. Wait until the DaemonSets'
newest template is the recorded one. 4. Clear the state of nodes that never changed, see them done, release them. 5. Put
failed nodes back into the operator's queue. 6. Release the changed nodes in waves. `rollback_retries` handles nodes
that fail on the way.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from rollouts.components.base import Phase
from rollouts.engine.decide.acts import (
    AS_BEFORE,
    Decision,
    MovePlan,
    MoveStage,
    OpenRollbackStage,
    ReleaseWave,
    RequeueFailed,
)
from rollouts.engine.decide.budget import room
from rollouts.engine.decide.gate_evaluation import all_pass, evaluate, first_result
from rollouts.engine.decide.releases import (
    SOON,
    recall,
    recall_restrained,
    recall_sentence,
    restrained_in,
    unfinished_releases,
    unqueued_yet,
    waiting_nodes_text,
)
from rollouts.engine.decide.restoration import (
    came_since,
    in_the_operators_hands,
    is_ours,
    nobody_changed,
    nodes_with_foreign_hold,
    restore,
    unmarked,
)
from rollouts.engine.decide.rollback_retries import ask_for_help, beyond_us, try_again
from rollouts.engine.decide.target_progress import follow, lost_targets
from rollouts.engine.decide.unmanaged_nodes import ABORT_FREES
from rollouts.engine.snapshot import NodeSnapshot, Snapshot, StageSnapshot
from rollouts.gates.base import UNTESTED, Answer, GateResult, When
from rollouts.gates.soak import Soak
from rollouts.lifecycle import IN_FLIGHT, PlanState, StageState, TargetState
from rollouts.node_order.node_selection import next_wave
from wording.lists import names
from wording.numbers import are, count, stay, was


def roll_back(snapshot: Snapshot, *, now: datetime) -> Decision:
    if snapshot.version.object_trouble:
        return Decision(f"{snapshot.version.object_trouble} No version can be restored. {ABORT_FREES}")
    if restoring := restore(snapshot):
        return restoring
    if gone := lost_targets(snapshot):
        return Decision(AS_BEFORE, moves=gone, look_again_in=timedelta(0))
    if waiting := _without_operator(snapshot):
        return waiting
    stage = snapshot.rollback_stage
    results = {stage.index: evaluate(stage, When.THROUGH, now=now)} if stage.state is not StageState.WAITING else {}
    return replace(_bring_back(snapshot, results, now=now), results=results)


def _without_operator(snapshot: Snapshot) -> Decision | None:
    left = tuple(node.name for node in snapshot.nodes if is_ours(node) and not snapshot.is_as_before(node))
    off = snapshot.policy.off
    if not off or not left:
        return None
    why = f"{off.reason}: the operator does not bring {names(left)} back to {snapshot.version.old}."
    helps = f"{off.fix}, or abort: then {count(len(left), 'node')} {stay(len(left))} held with the present driver."
    return Decision(f"{why} {helps}", acts=recall(snapshot))


def _bring_back(snapshot: Snapshot, results: Mapping[int, Mapping[str, GateResult]], *, now: datetime) -> Decision:
    stage = snapshot.rollback_stage
    if missing := _not_as_before(snapshot):
        sentence = f"{count(len(missing), 'node')} must be rolled back."
        return Decision(sentence, acts=(OpenRollbackStage(missing),), look_again_in=timedelta(0))
    if stage.state is StageState.WAITING:
        if not stage.targets:
            if waiting := in_the_operators_hands(snapshot):
                return waiting
            are_others = nodes_with_foreign_hold(snapshot) or unmarked(snapshot)
            gone = "all holds of this plan are removed" if are_others else "every hold is gone"
            is_back = f"{nobody_changed(snapshot)}: {snapshot.says.is_back.format(gone=gone)}"
            reason = " ".join(f"{sentence}." for sentence in (is_back, *_not_on_it(snapshot)))
            return Decision(reason, moves=(MovePlan(PlanState.ROLLED_BACK, reason),))
        moves = (MoveStage(stage.index, StageState.OPENING, "The old version is back."),)
        return Decision("The rollback stage opens.", moves=moves, look_again_in=timedelta(0))
    if stage.state is StageState.OPENING:
        moves = (MoveStage(stage.index, StageState.PROMOTING, "The plan's approval covers its rollback."),)
        return Decision("The rollback stage begins.", moves=moves, look_again_in=timedelta(0))
    called_back = recall(snapshot) if snapshot.orders.wait_reason else recall_restrained(snapshot, (stage,))
    if seen := follow(snapshot, stage):
        return Decision(AS_BEFORE, acts=called_back, moves=seen, look_again_in=timedelta(0))
    if called_back and not snapshot.orders.wait_reason:
        return Decision(recall_sentence(snapshot, called_back), called_back, look_again_in=SOON)
    if not snapshot.orders.wait_reason and (unfinished := unfinished_releases(snapshot, stage)):
        return Decision(f"Releasing {names(unfinished.targets)} to roll back.", acts=(unfinished,), look_again_in=SOON)
    if failed := _failed(snapshot):
        sentence = f"Putting {names(tuple(failed.values()))} back into the operator's queue."
        return Decision(sentence, acts=(RequeueFailed(failed),), look_again_in=SOON)
    return _release_waves(snapshot, results.get(stage.index, {}), now=now)


def _not_on_it(snapshot: Snapshot) -> tuple[str, ...]:
    """Returns nodes that this plan cannot roll back: held by others, or joined too late to be held."""
    theirs, new, version = nodes_with_foreign_hold(snapshot), came_since(snapshot), snapshot.version.old
    parts = (
        f"{names(theirs)} {are(len(theirs))} held by somebody else, and not on {version}" if theirs else "",
        f"{names(new)} joined later, and {are(len(new))} not on {version} yet" if new else "",
        unmarked(snapshot),
    )
    return tuple(part for part in parts if part)


def _not_as_before(snapshot: Snapshot) -> dict[str, str]:
    known = {target.uid for target in snapshot.rollback_stage.targets}
    astray = (node for node in snapshot.nodes if node.uid not in known and not snapshot.is_as_before(node))
    return {node.uid: node.name for node in astray if is_ours(node)}


def _failed(snapshot: Snapshot) -> dict[str, str]:
    """Returns failed nodes. Only the label gets them out of upgrade-failed, and each occupies an operator slot."""
    targets = {target.uid for target in snapshot.rollback_stage.targets}
    stuck = (node for node in snapshot.nodes if node.uid in targets and node.phase is Phase.FAILED)
    return {node.uid: node.name for node in stuck if node.has_label and not snapshot.templates.is_in_sync(node)}


def _release_waves(snapshot: Snapshot, answers: Mapping[str, GateResult], *, now: datetime) -> Decision:
    stage = snapshot.rollback_stage
    if blocked := snapshot.orders.wait_reason or snapshot.stale_reason:
        return Decision(blocked, acts=recall(snapshot))
    if again := try_again(snapshot):
        sentence = (
            f"{names(tuple(move.name for move in again))} failed in the rollback and {are(len(again))} tried again."
        )
        return Decision(sentence, moves=again, look_again_in=timedelta(0))
    held = stage.in_state(TargetState.HELD)
    free = room(snapshot, stage)
    nodes = snapshot.nodes_by_uid
    restrained = restrained_in(snapshot, stage)
    may_go = [target for target in held if target.is_seen and target.name not in restrained]
    going = [target for target in may_go if _waits(nodes.get(target.uid))]
    ready = [target.name for target in going]
    # Nodes that are broken already lose nothing by going first, and room() counts them whether they go or not.
    broken = [target.name for target in going if nodes[target.uid].is_unavailable]
    may_add = len(stage.in_state(*IN_FLIGHT)) < stage.max_unavailable
    budgets = snapshot.budgets
    one_broken = next_wave(broken, 1, budgets) if may_add and not free.nodes else ()
    wave = one_broken or next_wave(ready, free.nodes, budgets)
    if wave and stage.state is StageState.SOAKING:
        to_go = f"{names(wave)} must roll back after all."
        moves = (MoveStage(stage.index, StageState.PROMOTING, to_go),)
        return Decision(to_go, moves=moves, look_again_in=timedelta(0))
    if wave:
        act = ReleaseWave(stage.index, wave, f"Rolling back {count(len(wave), 'node')}: {free.reason}.")
        return Decision(f"Releasing {names(wave)} to roll back.", acts=(act,), look_again_in=SOON)
    on_the_way = stage.in_state(*IN_FLIGHT)
    failed = beyond_us(snapshot)
    others = [target for target in held if target not in failed]
    full = budgets.waiting(ready)
    if failed and not on_the_way and not (others and free.nodes and not full):
        return ask_for_help(snapshot, failed, now=now)
    if held and len(restrained) == len(held):
        return Decision(waiting_nodes_text(stage, restrained))
    if full and free.nodes:
        return Decision(waiting_nodes_text(stage, {**full, **restrained}))
    if held:
        why = unqueued_yet(len(held)) if free.nodes else free.reason
        return Decision(f"{count(len(held), 'node')} must still be rolled back; {why}.", look_again_in=SOON)
    if on_the_way:
        warning = first_result(Answer.FAIL, answers)
        but = f" But: {warning[1].sentence}" if warning else ""
        under_way = f"{count(len(on_the_way), 'node')} {are(len(on_the_way))} rolling back to {snapshot.version.old}."
        return Decision(f"{under_way}{but}", look_again_in=SOON)
    return _settle(snapshot, answers, now=now)


def _waits(node: NodeSnapshot | None) -> bool:
    return node is not None and node.has_label and node.phase is Phase.QUEUED


def _settle(snapshot: Snapshot, answers: Mapping[str, GateResult], *, now: datetime) -> Decision:
    """Ends the rollback when every target is back. A failing gate only warns here (Z32)."""
    stage = snapshot.rollback_stage
    if stage.state is StageState.PROMOTING:
        moves = (MoveStage(stage.index, StageState.SOAKING, "Every target runs the old version again."),)
        return Decision("Evaluating the nodes that were rolled back.", moves=moves, look_again_in=timedelta(0))
    if waiting := in_the_operators_hands(snapshot):
        return waiting
    if all_pass(stage, answers) or not stage.evidence.counted:
        return _rolled_back(stage, _how_it_ended(snapshot), "Every gate passed.")
    if failed := first_result(Answer.FAIL, answers):
        return _rolled_back(stage, f"{snapshot.version.old} is restored, but a gate fails: {failed[1].sentence}")
    waits = [result for result in answers.values() if result.answer is Answer.WAIT]
    # The soak waits for the others, so it waits for ever where one of them can never tell. An idle node is no reason to
    # wait: the version that it has again was in use before the plan.
    others = [result for key, result in answers.items() if result in waits and key != Soak.key]
    can_never_tell = bool(others) and all(result.is_final or result.cause == UNTESTED for result in others)
    if can_never_tell or (waits and now - stage.state_since > stage.wait_timeout):
        return _rolled_back(stage, f"{_how_it_ended(snapshot)} This could not be evaluated: {waits[0].sentence}")
    return Decision(
        f"The nodes are rolled back and being evaluated: {waits[0].sentence if waits else 'no gate has a result.'}",
        look_again_in=SOON,
    )


def _rolled_back(stage: StageSnapshot, reason: str, passed_reason: str = "") -> Decision:
    passed = MoveStage(stage.index, StageState.PASSED, passed_reason or reason)
    return Decision(reason, moves=(passed, MovePlan(PlanState.ROLLED_BACK, reason)))


def _how_it_ended(snapshot: Snapshot) -> str:
    stage = snapshot.rollback_stage
    out = [(target.name, target.uid) for target in stage.in_state(TargetState.EXCLUDED)]
    gone = tuple(f"{name} {snapshot.gone[uid]}" for name, uid in out if uid in snapshot.gone)
    held = {node.uid for node in snapshot.nodes if node.has_label}
    kept = tuple(name for name, uid in out if uid in held)
    free = tuple(name for name, uid in out if uid not in held and uid not in snapshot.gone)
    parts = (
        f"{names(kept)} {was(len(kept))} excluded from the rollback, and {stay(len(kept))} held" if kept else "",
        f"{names(free)} {was(len(free))} excluded from the rollback, and {are(len(free))} not held" if free else "",
        names(gone),
        *_not_on_it(snapshot),
    )
    but = "; ".join(part for part in parts if part)
    if not but:
        return f"Every node runs {snapshot.version.old} again."
    return f"Every other node runs {snapshot.version.old} again: {but}."
