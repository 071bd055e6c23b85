"""The way forward: stage after stage, wave after wave, with its own halts. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from rollouts.engine.decide.acts import (
    AS_BEFORE,
    Decision,
    LiftHolds,
    MovePlan,
    MoveStage,
    PlaceHolds,
)
from rollouts.engine.decide.gate_evaluation import (
    all_pass,
    counted_results,
    evaluate,
    exceeded_soak_limit,
    first_result,
)
from rollouts.engine.decide.holds import changed_template
from rollouts.engine.decide.node_retries import retried_targets
from rollouts.engine.decide.releases import (
    SOON,
    held_though_changed,
    recall,
    recall_restrained,
    recall_sentence,
    release,
    to_hold,
    unfinished_releases,
    wait_for_gates,
)
from rollouts.engine.decide.restoration import unmarked
from rollouts.engine.decide.target_progress import follow
from rollouts.engine.decide.unmanaged_nodes import release_unmanaged_nodes
from rollouts.engine.decide.write_failures import nobody_left
from rollouts.engine.snapshot import NodeSnapshot, Snapshot, StageSnapshot
from rollouts.gates.base import Answer, GateResult, When
from rollouts.gates.failure_budget import FailureBudget
from rollouts.gates.soak import Soak
from rollouts.lifecycle import PlanState, StageState, TargetState
from wording.durations import spell
from wording.lists import names
from wording.numbers import are, count, either, stay, was

ASKED = (StageState.SOAKING, StageState.HALTED)

GateResults = dict[int, dict[str, GateResult]]


def promote(snapshot: Snapshot, *, now: datetime) -> Decision:
    moves = tuple(move for stage in snapshot.forward for move in follow(snapshot, stage))
    results = ask(snapshot, now=now)
    if halt := reason_to_halt(snapshot, results):
        index, reason = halt
        halted = (*moves, *_halt(snapshot, index, reason))
        void = reason if snapshot.version.template_change else ""
        return Decision(
            reason, acts=recall(snapshot), moves=halted, results=results, void_reason=void, look_again_in=SOON
        )
    blocked = snapshot.orders.wait_reason or _without_controller(snapshot)
    called_back = recall(snapshot) if blocked else recall_restrained(snapshot, snapshot.forward)
    if moves:
        return Decision(AS_BEFORE, acts=called_back, moves=moves, results=results, look_again_in=timedelta(0))
    if unheld := to_hold(snapshot):
        sentence = snapshot.says.holding.format(nodes=count(len(unheld), "node"))
        return Decision(sentence, acts=(*called_back, PlaceHolds(unheld)), results=results, look_again_in=SOON)
    if snapshot.templates.has_daemonsets and (freeing := release_unmanaged_nodes(snapshot)):
        return replace(freeing, acts=(*called_back, *freeing.acts), results=results)
    if blocked:
        return Decision(blocked, acts=called_back, results=results)
    if asks := _armed_for_too_long(snapshot, now=now):
        return Decision(asks, acts=recall(snapshot), results=results, pause_reason=asks)
    if called_back:
        return Decision(recall_sentence(snapshot, called_back), called_back, results=results, look_again_in=SOON)
    return replace(_step(snapshot, results, now=now), results=results)


def _without_controller(snapshot: Snapshot) -> str:
    """Returns why nothing is released while the upgrade controller is off: it forgets node states, and changes run
    unwatched."""
    off = snapshot.policy.off
    return f"{off.reason}: the operator changes no node and restores no node. {off.fix}." if off else ""


def _armed_for_too_long(snapshot: Snapshot, *, now: datetime) -> str:
    """Returns a reminder: in an armed fleet every recreated driver pod changes its node, held or not (Z4)."""
    orders = snapshot.orders
    if orders.armed_since is None or now - orders.armed_since <= orders.may_be_armed_for:
        return ""
    return (
        f"The cluster has been armed for {spell(orders.may_be_armed_for)}. Resume to continue for the same "
        "time, or roll back."
    )


def ask(snapshot: Snapshot, *, now: datetime) -> GateResults:
    """Returns the gate results of the open stage, and of the last passed stage while the next one waits."""
    answers: GateResults = {}
    for stage in snapshot.forward:
        if stage.state is StageState.OPENING:
            answers[stage.index] = evaluate(stage, When.ENTRY, When.WAVE, now=now)
        elif stage.state is StageState.PROMOTING:
            answers[stage.index] = evaluate(stage, When.WAVE, When.THROUGH, now=now)
        elif stage.state in ASKED or (stage.state is StageState.PASSED and _still_counts(snapshot, stage)):
            answers[stage.index] = evaluate(stage, When.THROUGH, now=now)
    return answers


def _still_counts(snapshot: Snapshot, stage: StageSnapshot) -> bool:
    later = (other for other in snapshot.forward if other.index > stage.index)
    following = [other for other in later if other.state is not StageState.ABANDONED]  # completed without it
    return not following or following[0].state is StageState.OPENING


def reason_to_halt(snapshot: Snapshot, results: Mapping[int, Mapping[str, GateResult]]) -> tuple[int, str] | None:
    """Returns the number of the stage that must halt and the reason.

    An old snapshot can halt a stage but never pass it.
    """
    current = current_stage(snapshot) or snapshot.forward[-1]
    if snapshot.version.object_trouble:
        return current.index, snapshot.version.object_trouble
    if not snapshot.version.is_new:
        return (
            current.index,
            f"{snapshot.version.by_others}: it should be {snapshot.version.new}. {snapshot.says.stays}",
        )
    if snapshot.version.template_change:
        return current.index, changed_template(snapshot)
    again = retried_targets(snapshot)
    if escaped := [node for node in snapshot.nodes if node.uid not in again and _escaped(snapshot, node)]:
        return current.index, _escaped_nodes_text(snapshot, escaped)
    for stage in snapshot.forward:
        answers = counted_results(stage, results.get(stage.index, {}))
        # A node that failed fails other gates, too, and this one names its cause.
        failed_nodes_first = {key: answers[key] for key in (FailureBudget.key, *answers) if key in answers}
        if failed := first_result(Answer.FAIL, failed_nodes_first):
            return stage.index, failed[1].sentence
    return None


def _escaped(snapshot: Snapshot, node: NodeSnapshot) -> bool:
    """Returns whether a held node has changed, also outside of all stages.

    A node that joined after the version was written never had the old driver, so it is not an escape.
    """
    if not node.hold_wanted or node.hold_is_foreign or node.is_late_node or not node.pod_hash:
        return False
    return node.has_begun or (
        not snapshot.templates.has_old_pod(node)
        and snapshot.templates.is_in_sync(node)
        and _is_begun_nowhere(snapshot, node)
    )


def _escaped_nodes_text(snapshot: Snapshot, escaped: Sequence[NodeSnapshot]) -> str:
    freed = tuple(node.name for node in escaped if not node.has_label)
    again = tuple(node.name for node in escaped if node.has_label and node.was_held_again)
    held = tuple(node.name for node in escaped if node.has_label and not node.was_held_again)
    said = (
        f"{names(freed)} began to load the new driver: somebody removed {_its_hold(freed)}." if freed else "",
        f"{names(again)} began to load the new driver: somebody had removed {_its_hold(again)} for a while."
        if again
        else "",
        snapshot.says.escaped.format(names=names(held)) if held else "",
    )
    return " ".join(sentence for sentence in said if sentence)


def _its_hold(nodes: Sequence[str]) -> str:
    return either(len(nodes), "its hold", "their holds")


def _is_begun_nowhere(snapshot: Snapshot, node: NodeSnapshot) -> bool:
    begun = (TargetState.CHANGING, TargetState.CHANGED, TargetState.FAILED)
    return not any(target.uid == node.uid for stage in snapshot.forward for target in stage.in_state(*begun))


def current_stage(snapshot: Snapshot) -> StageSnapshot | None:
    """Returns the stage in progress; None if every stage has passed or the plan was completed early."""
    over = (StageState.PASSED, StageState.ABANDONED)
    return next((stage for stage in snapshot.forward if stage.state not in over), None)


def _halt(snapshot: Snapshot, index: int, reason: str) -> tuple[MoveStage | MovePlan, ...]:
    stage = next(stage for stage in snapshot.forward if stage.index == index)
    plan = MovePlan(PlanState.HALTED, reason)
    if stage.state in {StageState.WAITING, StageState.HALTED, StageState.ABANDONED}:
        return (plan,)
    return (MoveStage(index, StageState.HALTED, reason), plan)


def _step(snapshot: Snapshot, results: GateResults, *, now: datetime) -> Decision:
    if snapshot.stale_reason:
        return Decision(snapshot.stale_reason)
    if not snapshot.templates.has_daemonsets:
        return Decision(
            "The driver object has no DaemonSet now: it selects no node, or the operator is creating it again."
        )
    stage = current_stage(snapshot)
    if stage is None:
        if unsure := _not_sure_any_more(snapshot, results, now=now):
            return unsure
        if late := held_though_changed(snapshot):
            return Decision(
                f"Releasing {count(len(late), 'changed node')}.", acts=(LiftHolds(late),), look_again_in=SOON
            )
        return release_unmanaged_nodes(snapshot) or _finish(snapshot)
    if unfinished := unfinished_releases(snapshot, stage):
        return Decision(f"{stage.name}: releasing {names(unfinished.targets)}.", acts=(unfinished,), look_again_in=SOON)
    if stage.state is StageState.WAITING:
        return _wait(stage)
    if stage.state is StageState.OPENING:
        return _open(snapshot, stage, results, now=now)
    if stage.state is StageState.PROMOTING:
        return release(snapshot, stage, results[stage.index], now=now)
    return _soak(snapshot, stage, results[stage.index], now=now)


def _not_sure_any_more(snapshot: Snapshot, results: GateResults, *, now: datetime) -> Decision | None:
    evaluated = [stage for stage in snapshot.forward if stage.state is not StageState.ABANDONED]
    last = (evaluated or snapshot.forward)[-1]
    undone = tuple(target.name for stage in snapshot.forward for target in stage.evidence.not_changed)
    if evaluated and (emptied := nobody_left(snapshot, last, says="Every stage passed, except:")):
        return emptied
    waits = first_result(Answer.WAIT, counted_results(last, results.get(last.index, {})))
    if not undone and not waits:
        return None
    reason = (
        waits[1].sentence
        if waits
        else f"{names(undone)} {was(len(undone))} changed before, and {are(len(undone))} no longer changed."
    )
    sentence = f"Every stage passed, except: {reason}"
    return Decision(sentence, pause_reason=sentence if now - last.state_since > last.wait_timeout else "")


def _finish(snapshot: Snapshot) -> Decision:
    held = tuple(node.name for node in snapshot.nodes if node.has_label and not node.hold_is_foreign)
    kept = unmarked(snapshot)
    out = tuple(
        target.name
        for stage in snapshot.forward
        for target in stage.in_state(TargetState.EXCLUDED)
        if target.uid not in snapshot.gone
    )
    free = tuple(name for name in out if name not in held)
    parts = (
        f"Promoted, except {count(len(out), 'node')}." if out else "Every stage passed.",
        f"{names(free)} {was(len(free))} excluded and {are(len(free))} not held." if free else "",
        snapshot.says.left.format(names=names(held), stay=stay(len(held))) if held else "",
        f"{kept}." if kept else "",
    )
    reason = " ".join(part for part in parts if part)
    return Decision(reason, moves=(MovePlan(PlanState.PROMOTED, reason),))


def _wait(stage: StageSnapshot) -> Decision:
    moves = (MoveStage(stage.index, StageState.OPENING, "It is its turn."),)
    return Decision(f"{stage.name} is next.", moves=moves, look_again_in=timedelta(0))


def _open(snapshot: Snapshot, stage: StageSnapshot, results: GateResults, *, now: datetime) -> Decision:
    if emptied := nobody_left(snapshot, stage):
        return emptied
    if waits := wait_for_gates(stage, results[stage.index], now=now):
        return waits
    earlier = [other for other in snapshot.forward if other.index < stage.index][-1:]
    for other in earlier:
        if emptied := nobody_left(snapshot, other, says=f"{stage.name} waits:"):
            return emptied
        unsure = f"{stage.name} waits: a gate of {other.name} no longer passes."
        if waits := wait_for_gates(other, results.get(other.index, {}), says=unsure, now=now):
            return waits
    moves = (MoveStage(stage.index, StageState.PROMOTING, "Nothing prevents the release of its first nodes."),)
    return Decision(f"{stage.name} begins.", moves=moves, look_again_in=timedelta(0))


def _soak(snapshot: Snapshot, stage: StageSnapshot, answers: Mapping[str, GateResult], *, now: datetime) -> Decision:
    if again := stage.evidence.tried_again:
        reason = f"{names(tuple(target.name for target in again))} {are(len(again))} tried again."
        moves = (MoveStage(stage.index, StageState.PROMOTING, reason),)
        return Decision(reason, moves=moves, look_again_in=timedelta(0))
    if all_pass(stage, answers):
        moves = (MoveStage(stage.index, StageState.PASSED, "Every gate passed."),)
        return Decision(f"{stage.name} passed.", moves=moves, look_again_in=timedelta(0))
    if emptied := nobody_left(snapshot, stage):
        return emptied
    if waits := wait_for_gates(stage, answers, now=now):
        interrupted = None if waits.pause_reason else _ask_about_interruptions(stage, answers, now=now)
        return replace(interrupted or waits, look_again_in=SOON)
    return Decision(f"{stage.name} has no gate that counts, so it can never pass.")


def _ask_about_interruptions(
    stage: StageSnapshot, answers: Mapping[str, GateResult], *, now: datetime
) -> Decision | None:
    """Pauses the plan if a gate waits again in a stage that has exceeded its limit; None if the soak may just run."""
    others = {key: result for key, result in counted_results(stage, answers).items() if key != Soak.key}
    waits = first_result(Answer.WAIT, others)
    limit = exceeded_soak_limit(stage, now=now)
    if waits is None or not limit:
        return None
    asks = (
        f"{stage.name}: {waits[1].sentence} The stage has not passed within {limit}: a person decides whether to wait, "
        "exclude the nodes or roll back."
    )
    return Decision(asks, pause_reason=asks)
