"""Selects nodes to release, to hold and to recall. Pure."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from gpu.upgrade_controller import LOOKS_AGAIN
from rollouts.components.base import Phase
from rollouts.components.throttle import Room
from rollouts.engine.decide.acts import Decision, FinishRelease, MoveStage, Recall, ReleaseWave, RequeueFailed
from rollouts.engine.decide.budget import room
from rollouts.engine.decide.gate_evaluation import counted_results, exceeded_wait_timeout
from rollouts.engine.decide.node_retries import to_queue, waiting, waiting_anywhere
from rollouts.engine.snapshot import NodeSnapshot, Snapshot, StageSnapshot
from rollouts.gates import GATES
from rollouts.gates.approval import ApprovalGate
from rollouts.gates.base import TO_COME, UNPROVED, UNTIMED_WAITS, Answer, GateResult, When
from rollouts.gates.shared_waits import gates_sentence, shared_waits
from rollouts.gates.soak import Soak
from rollouts.gates.test_job import TestJobGate
from rollouts.gates.window import Window, comes_by_itself
from rollouts.lifecycle import IN_FLIGHT, StageState, TargetState
from rollouts.node_order.node_selection import next_wave
from wording.durations import spell
from wording.lists import names
from wording.numbers import are, count, either

SOON = timedelta(seconds=1)  # something is on its way
UNHURRIED = frozenset({ApprovalGate.key, Soak.key})  # a person has no deadline, and the soak has its own


def release(snapshot: Snapshot, stage: StageSnapshot, answers: Mapping[str, GateResult], *, now: datetime) -> Decision:
    if ignored := _ignored(stage, now=now):
        asks = f"{stage.name}: the operator has not begun to change {names(ignored)} for {spell(stage.wait_timeout)}."
        look = snapshot.operator_down or "Check the operator's log and slots, then resume."
        return Decision(asks, pause_reason=f"{asks} {look}")
    held = stage.in_state(TargetState.HELD)
    if not held:
        on_the_way = stage.in_state(TargetState.RELEASING, TargetState.RELEASED, TargetState.CHANGING)
        if on_the_way:
            going = f"{count(len(on_the_way), 'node')} {are(len(on_the_way))} on the way"
            return Decision(f"{stage.name}: {going}; {snapshot.says.under_way}.", look_again_in=SOON)
        moves = (MoveStage(stage.index, StageState.SOAKING, _all_gone(stage)),)
        return Decision(f"{stage.name} soaks.", moves=moves, look_again_in=timedelta(0))
    if stuck := to_queue(snapshot, stage):
        sentence = f"{stage.name}: putting {names(tuple(stuck.values()))} back into the operator's queue."
        return Decision(sentence, acts=(RequeueFailed(stuck),), look_again_in=SOON)
    cordoned = cordoned_by_others(snapshot, stage)
    off, free = frozenset(cordoned), room(snapshot, stage)
    ready = [
        target.name
        for target in held
        if target.is_seen and target.name not in off and _may_go(snapshot, stage, target.uid)
    ]
    restrained = restrained_in(snapshot, stage)
    wave = _going(snapshot, stage, ready, free.nodes)
    before_each = {gate.key for gate in stage.gates if gate.when is When.WAVE}
    asked = {key: result for key, result in answers.items() if key in before_each or result.cause == UNPROVED}
    if wave and (kept := wait_for_gates(stage, asked, now=now)):
        return replace(kept, look_again_in=SOON)
    if wave:
        act = ReleaseWave(stage.index, wave, f"{count(len(wave), 'node')}: {free.reason}.")
        return Decision(f"{stage.name}: releasing {names(wave)}.", acts=(act,), look_again_in=SOON)
    if restrained and len({*restrained, *cordoned}) == len(held):
        return Decision(waiting_nodes_text(stage, restrained, cordoned))
    if not free.nodes and (unproven := _untested(snapshot, stage, answers, now=now)):
        return replace(unproven, look_again_in=SOON)
    return _why_nothing_is_released(snapshot, stage, ready, restrained, cordoned, free)


def _untested(
    snapshot: Snapshot, stage: StageSnapshot, answers: Mapping[str, GateResult], *, now: datetime
) -> Decision | None:
    """Waits for the test Job of nodes that use up the room; None if that is not the reason.

    The test's timeout counts before the soak as well.
    """
    unproven = any(target.uid in snapshot.cordons.in_force for target in stage.in_state(TargetState.CHANGED))
    if not unproven or TestJobGate.key not in answers or answers[TestJobGate.key].cause == TO_COME:
        return None
    return wait_for_gates(stage, {TestJobGate.key: answers[TestJobGate.key]}, now=now)


def _all_gone(stage: StageSnapshot) -> str:
    changed, failed = len(stage.in_state(TargetState.CHANGED)), len(stage.in_state(TargetState.FAILED))
    if failed:
        return f"No target is left to release: {changed} changed, {failed} failed."
    return "Every target has changed." if changed else "Every target was excluded."


def _why_nothing_is_released(
    snapshot: Snapshot,
    stage: StageSnapshot,
    ready: Sequence[str],
    restrained: Mapping[str, str],
    cordoned: Sequence[str],
    free: Room,
) -> Decision:
    held = stage.in_state(TargetState.HELD)
    if len(cordoned) < len(held) and not free.nodes:
        return Decision(f"{stage.name}: {_to_go(len(held))}; {free.reason}.", look_again_in=SOON)
    if full := snapshot.budgets.waiting(ready):
        return Decision(waiting_nodes_text(stage, {**full, **restrained}, cordoned))
    if cordoned:
        return Decision(
            f"{stage.name}: {names(cordoned)} {are(len(cordoned))} cordoned by somebody else. Uncordon or exclude."
        )
    if theirs := _held_by_others(snapshot, stage):
        helps = f"the owner of the label must remove it, or you exclude {either(len(theirs), 'the node', 'the nodes')}"
        return Decision(f"{stage.name}: {names(theirs)} {are(len(theirs))} held by somebody else: {helps}.")
    if unseen := tuple(target.name for target in held if not target.is_seen):
        return Decision(f"{stage.name}: {names(unseen)} cannot be seen now.", look_again_in=SOON)
    unqueued = f"{_to_go(len(held))}; {unqueued_yet(len(held))}"
    return Decision(f"{stage.name}: {unqueued}.", look_again_in=SOON)


def unqueued_yet(nodes: int) -> str:
    return f"the operator has not queued {either(nodes, 'it', 'them')} yet: {LOOKS_AGAIN}"


def _held_by_others(snapshot: Snapshot, stage: StageSnapshot) -> tuple[str, ...]:
    uids = {node.uid for node in snapshot.nodes if node.hold_is_foreign}
    return tuple(target.name for target in stage.in_state(TargetState.HELD) if target.uid in uids)


def _going(snapshot: Snapshot, stage: StageSnapshot, ready: Sequence[str], room: int) -> tuple[str, ...]:
    wave = next_wave(ready, room, snapshot.budgets)
    return wave or next_wave(_broken_already(snapshot, stage, ready), 1, snapshot.budgets)


def _broken_already(snapshot: Snapshot, stage: StageSnapshot, ready: Sequence[str]) -> tuple[str, ...]:
    """Returns a node to retry if the budget has no room: the budget counts it as broken in any case."""
    broken = {node.uid for node in snapshot.nodes if node.is_unavailable}
    again = (target.name for target in stage.evidence.tried_again if target.uid in broken)
    may_add = len(stage.in_state(*IN_FLIGHT)) < stage.max_unavailable
    return tuple(name for name in again if name in ready)[:1] if may_add else ()


def wait_for_gates(
    stage: StageSnapshot, answers: Mapping[str, GateResult], *, says: str = "", now: datetime
) -> Decision | None:
    """Waits for a gate that counts, and pauses the plan once the gate's timeout is over; None if no gate waits.

    `says` is the sentence before, where the stage's name is not enough.
    """
    said = says or f"{stage.name}:"
    waiting = [(key, one) for key, one in counted_results(stage, answers).items() if one.answer is Answer.WAIT]
    unhurried = _unhurried(stage, dict(waiting))
    for key, result in waiting:
        if key not in unhurried and (waited := exceeded_wait_timeout(stage, key, now=now)):
            sentence = f"{said} {result.sentence} It has waited for {waited}"
            asks = f"{sentence}: a person decides whether to wait, exclude the nodes or roll back."
            return Decision(asks, pause_reason=asks)
    if not waiting:
        return None
    first = shared_waits((GATES[key].title, result) for key, result in waiting)[0]
    return Decision(f"{said} {first.sentence} {gates_sentence(first.lines)}".rstrip())


def _unhurried(stage: StageSnapshot, waiting: Mapping[str, GateResult]) -> frozenset[str]:
    """Returns the gates whose wait asks nobody: closed windows, and gates that depend on a freeze, a window or another
    gate."""
    unhurried = UNHURRIED | {key for key, result in waiting.items() if result.cause in UNTIMED_WAITS}
    window = waiting.get(Window.key)
    if window is None or not comes_by_itself(Window.key, window.cause):
        return unhurried
    return unhurried | {gate.key for gate in stage.gates if gate.when is When.WAVE}


def _ignored(stage: StageSnapshot, *, now: datetime) -> tuple[str, ...]:
    released = stage.in_state(TargetState.RELEASED)
    return tuple(target.name for target in released if now - target.state_since > stage.wait_timeout)


def _may_go(snapshot: Snapshot, stage: StageSnapshot, uid: str) -> bool:
    node = snapshot.nodes_by_uid.get(uid)
    is_ours = node is not None and node.has_label and not node.hold_is_foreign
    if node is not None and node.uid in waiting(stage) and node.phase is not Phase.QUEUED:
        return False
    is_off = uid in snapshot.cordons.in_force and uid not in waiting(
        stage
    )  # called back, and ours is still to go from it
    return is_ours and not is_off and uid not in snapshot.orders.restrained


def cordoned_by_others(snapshot: Snapshot, stage: StageSnapshot) -> tuple[str, ...]:
    """Returns held targets that are cordoned; the operator would take them beyond its own slots (Z6).

    Retries are left out: the operator cordoned them in their first try.
    """
    uids = {node.uid for node in snapshot.nodes if node.is_unschedulable} - waiting(stage) - snapshot.cordons.ours
    return tuple(target.name for target in stage.in_state(TargetState.HELD) if target.uid in uids)


def to_hold(snapshot: Snapshot) -> dict[str, str]:
    """Returns the nodes that lack a wanted label: late nodes, and nodes that somebody freed.

    Targets of a wave are left out, and so are nodes that have begun: a label cannot stop them.
    """
    again = waiting_anywhere(snapshot)
    may_be = (node for node in snapshot.nodes if not node.has_begun or (node.uid in again and _has_failed(node)))
    free = (node for node in may_be if not node.is_held and not node.busy_with and node.hold_wanted is not False)
    unwritten = (node for node in snapshot.nodes if node.is_unwritten)
    return {node.uid: node.name for node in (*free, *unwritten)}


def _has_failed(node: NodeSnapshot) -> bool:
    return node.phase is Phase.FAILED


def unfinished_releases(snapshot: Snapshot, stage: StageSnapshot) -> FinishRelease | None:
    """Returns the releases that a killed worker left between intent and act."""
    releasing = {target.uid for target in stage.in_state(TargetState.RELEASING)}
    kept = {node.uid for node in snapshot.nodes if node.uid in releasing and not snapshot.is_released(node)}
    left = tuple(target.name for target in stage.targets if target.uid in kept)
    return FinishRelease(stage.index, left) if left else None


def recall(snapshot: Snapshot, stages: Sequence[StageSnapshot] | None = None) -> tuple[Recall, ...]:
    """Recalls released targets that have not begun, in these stages (Z3). None means all stages."""
    return _recall(snapshot, snapshot.stages if stages is None else stages, lambda _: True)


def recall_restrained(snapshot: Snapshot, stages: Sequence[StageSnapshot]) -> tuple[Recall, ...]:
    """Recalls released targets that have not begun and whose pool has been frozen since (Z3)."""
    return _recall(snapshot, stages, lambda uid: uid in snapshot.orders.restrained)


def _recall(snapshot: Snapshot, stages: Sequence[StageSnapshot], wanted: Callable[[str], bool]) -> tuple[Recall, ...]:
    begun = {node.uid for node in snapshot.nodes if node.has_begun}
    found = []
    for stage in stages:
        released = stage.in_state(TargetState.RELEASING, TargetState.RELEASED)
        if targets := tuple(target.name for target in released if target.uid not in begun and wanted(target.uid)):
            found.append(Recall(stage.index, targets))
    return tuple(found)


def recall_sentence(snapshot: Snapshot, called_back: Sequence[Recall]) -> str:
    held = tuple(name for one in called_back for name in one.targets)
    uids = {target.name: target.uid for stage in snapshot.stages for target in stage.targets}
    return f"Holding {names(held)} again. {snapshot.orders.restrained[uids[held[0]]]}"


def _to_go(nodes: int) -> str:
    return f"{count(nodes, 'node')} must still change"


def restrained_in(snapshot: Snapshot, stage: StageSnapshot) -> dict[str, str]:
    held = stage.in_state(TargetState.HELD)
    return {
        target.name: snapshot.orders.restrained[target.uid]
        for target in held
        if target.uid in snapshot.orders.restrained
    }


def waiting_nodes_text(stage: StageSnapshot, restrained: Mapping[str, str], cordoned: Sequence[str] = ()) -> str:
    (sentence, number), *_ = Counter(restrained.values()).most_common(1)
    every, others = len(stage.in_state(TargetState.HELD)), tuple(name for name in cordoned if name not in restrained)
    still = "" if number == every else f" {number} of {every} {either(number, 'waits', 'wait')} for this."
    but = f" {names(others)} {are(len(others))} cordoned by somebody else: uncordon or exclude." if others else ""
    return f"{stage.name}: {_to_go(every)}. {sentence}{still}{but}"


def held_though_changed(snapshot: Snapshot) -> dict[str, str]:
    """Returns holds that must not outlive the plan: of nodes recalled as they began, of late nodes, and of nodes that
    returned with a new driver pod."""
    changed = {target.uid for stage in snapshot.forward for target in stage.in_state(TargetState.CHANGED)}
    new = (node for node in snapshot.nodes if node.uid in changed or _came_with_it(snapshot, node))
    held = (node for node in new if node.is_held and not node.hold_is_foreign)
    return {node.uid: node.name for node in held}


def _came_with_it(snapshot: Snapshot, node: NodeSnapshot) -> bool:
    return snapshot.templates.is_in_sync(node) and (node.is_late_node or node.hold_wanted is False)
