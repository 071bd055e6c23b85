"""The way forward: one stage after another, wave by wave, stopping itself. Pure."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from rollouts.engine.decide.acts import (
    AS_BEFORE,
    Decision,
    FinishRelease,
    LiftHolds,
    MovePlan,
    MoveStage,
    PlaceHolds,
    Recall,
    ReleaseWave,
)
from rollouts.engine.decide.budget import room
from rollouts.engine.decide.following import follow
from rollouts.engine.decide.judging import all_pass, first, judge
from rollouts.engine.picture import NodePicture, Picture, StagePicture
from rollouts.gates.base import Answer, Verdict, When, count, names, spell
from rollouts.lifecycle import PlanState, StageState, TargetState

SOON = timedelta(seconds=1)  # something is on its way
ASKED = (StageState.PROMOTING, StageState.SOAKING, StageState.HALTED)

Verdicts = dict[int, dict[str, Verdict]]


def promote(picture: Picture, *, now: datetime) -> Decision:
    moves = tuple(move for stage in picture.forward for move in follow(picture, stage))
    verdicts = ask(picture, now=now)
    if halt := reason_to_halt(picture, verdicts):
        index, because = halt
        halted = (*moves, *_halt(picture, index, because))
        return Decision(because, acts=recall(picture), moves=halted, verdicts=verdicts, look_again_in=SOON)
    if moves:
        return Decision(AS_BEFORE, moves=moves, verdicts=verdicts, look_again_in=timedelta(0))
    blocked = picture.stopped_because or picture.paused_because or _without_controller(picture)
    called_back = recall(picture) if blocked else ()
    if unheld := to_hold(picture):
        sentence = f"Holding {count(len(unheld), 'node')} that should not change now."
        return Decision(sentence, acts=(*called_back, PlaceHolds(unheld)), verdicts=verdicts, look_again_in=SOON)
    if blocked:
        return Decision(blocked, acts=called_back, verdicts=verdicts)
    return replace(_step(picture, verdicts, now=now), verdicts=verdicts)


def _without_controller(picture: Picture) -> str:
    """Switched off, the operator forgets the state of every node, and what is let go now would change unwatched."""
    if picture.policy.auto_upgrade:
        return ""
    return "autoUpgrade was switched off: the operator changes nothing. Switch it on, or roll back."


def ask(picture: Picture, *, now: datetime) -> Verdicts:
    """The answers that matter now: of the stage that is open, and of the last that passed while the next one waits."""
    answers: Verdicts = {}
    for stage in picture.forward:
        if stage.state is StageState.OPENING:
            answers[stage.index] = judge(stage, When.ENTRY, now=now)
        elif stage.state in ASKED or (stage.state is StageState.PASSED and _next_is_opening(picture, stage)):
            answers[stage.index] = judge(stage, When.THROUGH, now=now)
    return answers


def _next_is_opening(picture: Picture, stage: StagePicture) -> bool:
    following = [other for other in picture.forward if other.index > stage.index]
    return bool(following) and following[0].state is StageState.OPENING


def reason_to_halt(picture: Picture, verdicts: Mapping[int, Mapping[str, Verdict]]) -> tuple[int, str] | None:
    """The stage that must halt, and why. An old picture may halt a stage; it can never let it pass."""
    current = current_stage(picture)
    if current is None:
        return None
    if not picture.has_new_version:
        who = f"Somebody else set the version to {picture.object_version or 'nothing'}"
        return current.index, f"{who}: it should be {picture.to_version}. Every hold stays where it is."
    if escaped := tuple(node.name for node in picture.nodes if _escaped(picture, node)):
        return current.index, f"{names(escaped)} took the new driver although held."
    for index, answers in verdicts.items():
        if failed := first(Answer.FAIL, answers):
            return index, failed[1].because
    return None


def _escaped(picture: Picture, node: NodePicture) -> bool:
    """Held nodes that are no target of any stage count as well: they are the ones nobody watches.

    A node that joined since the version was written never had the old driver, so it has escaped from nothing.
    """
    if not node.hold_wanted or node.hold_is_foreign or node.is_joiner or not node.pod_hash:
        return False
    return node.has_begun or (
        not picture.has_old_pod(node) and picture.is_in_sync(node) and _is_begun_nowhere(picture, node)
    )


def _is_begun_nowhere(picture: Picture, node: NodePicture) -> bool:
    begun = (TargetState.CHANGING, TargetState.CHANGED, TargetState.FAILED)
    return not any(
        stage.node_uids[target.name] == node.uid for stage in picture.forward for target in stage.in_state(*begun)
    )


def current_stage(picture: Picture) -> StagePicture | None:
    """The stage whose turn it is. None: every stage has passed."""
    return next((stage for stage in picture.forward if stage.state is not StageState.PASSED), None)


def _halt(picture: Picture, index: int, because: str) -> tuple[MoveStage | MovePlan, ...]:
    stage = next(stage for stage in picture.forward if stage.index == index)
    plan = MovePlan(PlanState.HALTED, because)
    if stage.state in {StageState.WAITING, StageState.HALTED}:
        return (plan,)
    return (MoveStage(index, StageState.HALTED, because), plan)


def to_hold(picture: Picture) -> dict[str, str]:
    """Nodes that must carry the label and do not: joiners, and those somebody freed.

    A target of a wave is not among them: its row no longer wants the hold. Nor is one that has begun, which a
    label cannot stop any more.
    """
    free = (node for node in picture.nodes if not node.is_held and not node.has_begun)
    return {node.uid: node.name for node in free if node.hold_wanted is not False}


def unfinished_releases(picture: Picture, stage: StagePicture) -> FinishRelease | None:
    """What a worker that was killed between its intent and its act has left."""
    labelled = {node.uid for node in picture.nodes if node.has_label}
    releasing = stage.in_state(TargetState.RELEASING)
    left = tuple(target.name for target in releasing if stage.node_uids[target.name] in labelled)
    return FinishRelease(stage.index, left) if left else None


def recall(picture: Picture) -> tuple[Recall, ...]:
    """What was let go and has not begun, in every stage (hazard Z3)."""
    begun = {node.uid for node in picture.nodes if node.has_begun}
    found = []
    for stage in picture.stages:
        let_go = stage.in_state(TargetState.RELEASING, TargetState.RELEASED)
        if targets := tuple(target.name for target in let_go if stage.node_uids[target.name] not in begun):
            found.append(Recall(stage.index, targets))
    return tuple(found)


def _step(picture: Picture, verdicts: Verdicts, *, now: datetime) -> Decision:
    if picture.stale_because:
        return Decision(picture.stale_because)
    stage = current_stage(picture)
    if stage is None:
        if late := held_though_changed(picture):
            return Decision(
                f"Letting {count(len(late), 'node')} go that changed.", acts=(LiftHolds(late),), look_again_in=SOON
            )
        return Decision("Every stage passed.", moves=(MovePlan(PlanState.PROMOTED, "Every stage passed."),))
    if unfinished := unfinished_releases(picture, stage):
        return Decision(
            f"{stage.name}: letting {names(unfinished.targets)} go.", acts=(unfinished,), look_again_in=SOON
        )
    if stage.state is StageState.WAITING:
        return _wait(stage)
    if stage.state is StageState.OPENING:
        return _open(picture, stage, verdicts)
    if stage.state is StageState.PROMOTING:
        return _release(picture, stage, now=now)
    return _soak(stage, verdicts[stage.index], now=now)


def held_though_changed(picture: Picture) -> dict[str, str]:
    """Nodes that were called back in the moment they began, and joiners: their holds must not outlive the plan."""
    changed = {
        stage.node_uids[target.name] for stage in picture.forward for target in stage.in_state(TargetState.CHANGED)
    }
    new = (node for node in picture.nodes if node.uid in changed or (node.is_joiner and picture.is_in_sync(node)))
    held = (node for node in new if node.is_held and not node.hold_is_foreign)
    return {node.uid: node.name for node in held}


def _wait(stage: StagePicture) -> Decision:
    moves = (MoveStage(stage.index, StageState.OPENING, "It is its turn."),)
    return Decision(f"{stage.name} is opening.", moves=moves, look_again_in=timedelta(0))


def _open(picture: Picture, stage: StagePicture, verdicts: Verdicts) -> Decision:
    if held := first(Answer.HOLD, verdicts[stage.index]):
        return Decision(f"{stage.name}: {held[1].because}")
    earlier = [other for other in picture.forward if other.index < stage.index][-1:]
    for other in earlier:
        if held := first(Answer.HOLD, verdicts.get(other.index, {})):
            return Decision(f"{stage.name} waits: {other.name} is no longer sure. {held[1].because}")
    moves = (MoveStage(stage.index, StageState.PROMOTING, "Nothing speaks against letting its first nodes go."),)
    return Decision(f"{stage.name} begins.", moves=moves, look_again_in=timedelta(0))


def _release(picture: Picture, stage: StagePicture, *, now: datetime) -> Decision:
    if ignored := _ignored(stage, now=now):
        asks = f"{stage.name}: the operator has not begun with {names(ignored)} for {spell(stage.patience)}."
        return Decision(asks, pause_because=f"{asks} Look at its log and its slots, then resume.")
    held = stage.in_state(TargetState.HELD)
    if not held:
        on_the_way = stage.in_state(TargetState.RELEASING, TargetState.RELEASED, TargetState.CHANGING)
        if on_the_way:
            return Decision(f"{stage.name}: {count(len(on_the_way), 'node')} on the way.", look_again_in=SOON)
        moves = (MoveStage(stage.index, StageState.SOAKING, "Every target has changed."),)
        return Decision(f"{stage.name} soaks.", moves=moves, look_again_in=timedelta(0))
    cordoned = cordoned_by_others(picture, stage)
    free = room(picture, stage)
    ready = [
        target.name
        for target in held
        if target.is_seen and target.name not in cordoned and _may_go(picture, stage, target.name)
    ]
    wave = tuple(ready[: free.nodes])
    if wave:
        act = ReleaseWave(stage.index, wave, f"{count(len(wave), 'node')}: {free.because}.")
        return Decision(f"{stage.name}: letting {names(wave)} go.", acts=(act,), look_again_in=SOON)
    if len(cordoned) < len(held) and not free.nodes:
        return Decision(f"{stage.name}: {count(len(held), 'node')} to go; {free.because}.", look_again_in=SOON)
    if cordoned:
        return Decision(f"{stage.name}: {names(cordoned)} cordoned by somebody else. Uncordon or exclude.")
    return Decision(
        f"{stage.name}: {count(len(held), 'node')} to go; the operator has not queued them yet.", look_again_in=SOON
    )


def _ignored(stage: StagePicture, *, now: datetime) -> tuple[str, ...]:
    released = stage.in_state(TargetState.RELEASED)
    return tuple(target.name for target in released if now - target.state_since > stage.patience)


def _may_go(picture: Picture, stage: StagePicture, name: str) -> bool:
    """The label to take off is ours and was seen, and the operator has the node in its queue."""
    node = next((node for node in picture.nodes if node.uid == stage.node_uids[name]), None)
    return node is not None and node.has_label and not node.hold_is_foreign


def cordoned_by_others(picture: Picture, stage: StagePicture) -> tuple[str, ...]:
    """Held targets that are cordoned: the operator would take them at once, past its own slots (hazard Z6)."""
    uids = {node.uid for node in picture.nodes if node.is_unschedulable}
    return tuple(target.name for target in stage.in_state(TargetState.HELD) if stage.node_uids[target.name] in uids)


def _soak(stage: StagePicture, answers: Mapping[str, Verdict], *, now: datetime) -> Decision:
    if all_pass(stage, answers):
        moves = (MoveStage(stage.index, StageState.PASSED, "Every gate passed."),)
        return Decision(f"{stage.name} passed.", moves=moves, look_again_in=timedelta(0))
    held = first(Answer.HOLD, answers)
    if held is None:
        return Decision(f"{stage.name} names no gate, so it can never pass.")
    sentence = f"{stage.name}: {held[1].because}"
    if held[0] != "soak" and now - stage.state_since > stage.patience:
        asks = (
            f"{sentence} It has held for {spell(stage.patience)}: a person decides whether to wait, exclude or go back."
        )
        return Decision(asks, pause_because=asks)
    return Decision(sentence, look_again_in=SOON)
