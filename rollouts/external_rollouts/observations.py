"""The view that rows give of an external rollout: its begin, the states of its nodes, its end. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from rollouts.components.base import THROUGH, Phase
from rollouts.gates.base import TargetEvidence
from rollouts.lifecycle import BEGUN, ExternalRolloutState, TargetState
from wording.durations import spell
from wording.lists import names

NOT_BEGUN = frozenset({TargetState.HELD, TargetState.RELEASED})
TOLD_TO_THE_SECOND = timedelta(seconds=30)  # the start times of pods come from another clock
STILL = timedelta(days=7)  # without progress for this time, the rollout counts as given up


@dataclass(frozen=True)
class NodeLook:
    uid: str
    name: str
    phase: Phase
    is_held: bool  # with the skip label, whosever it is
    runs_it: bool  # the node runs the requested version: its loaded driver matches, and its pod has the newest template
    has_other_pod: bool = False  # than when it was last seen not to have begun; also where it has none now


@dataclass(frozen=True)
class Ending:
    to: ExternalRolloutState
    reason: str


def begins(*, was: str, version: str, at_work: Sequence[str]) -> str:
    """Returns why a rollout begins; empty if none does.

    `at_work` are nodes that the operator changes or will change.
    """
    if not version:
        return ""  # the operator's default: the requested version is unknown
    if version != was:
        return f"The object requests {version} now. Before, it requested {was or 'no version'}."
    if at_work:
        return f"The operator changes {names(at_work)}: no plan is in progress."
    return ""


def became(node: NodeLook, was: TargetState | None) -> TargetState:
    """Returns the node's state. `was` is the last state; None if never seen.

    A node that is silent while it changes is in progress, and not back at the start (Z21).
    """
    if node.phase is Phase.FAILED:
        return TargetState.FAILED
    if node.phase in THROUGH and node.runs_it:
        return TargetState.CHANGED
    if node.phase is Phase.AT_WORK or node.has_other_pod:
        return TargetState.CHANGING
    if node.phase in THROUGH and was in BEGUN:
        return TargetState.CHANGING
    return TargetState.HELD if node.is_held else TargetState.RELEASED


def shows_before(state: TargetState, *, is_first: bool, is_watched: bool) -> bool:
    """Returns whether the node's present state can be its baseline.

    A node with the new version at first sight counts only if it was observed right before; otherwise it may have
    changed unseen.
    """
    return state in NOT_BEGUN or (state is TargetState.CHANGED and is_first and is_watched)


def is_untouched(target: TargetEvidence) -> bool:
    """Returns whether the node runs the wanted version with its original driver pod, so that there is nothing to
    evaluate.

    This includes nodes not reached before the earlier version came back.
    """
    if target.state is not TargetState.CHANGED or target.baseline is None or target.driver_started_at is None:
        return False
    return target.driver_started_at < target.baseline.at - TOLD_TO_THE_SECOND


def ends(
    states: Mapping[str, TargetState],
    *,
    version: str,
    asked_for: str,
    all_pass: bool,
    is_known: bool,
    is_touched: bool,
    unproven: str,
    moved_at: datetime,
    now: datetime,
) -> Ending | None:
    """Returns how the rollout ends; None if it continues.

    `version` is the rollout's, `asked_for` the object's present one. `is_known` means that some baseline exists,
    `is_touched` that some node has changed or must change. `unproven` says where nothing has tested the new driver;
    empty if nowhere.
    """
    if asked_for != version:
        to = ExternalRolloutState.REPLACED if asked_for else ExternalRolloutState.GIVEN_UP
        return Ending(to, f"The object requests {asked_for or 'no version'} now.")
    if all_pass:
        return Ending(
            ExternalRolloutState.CAME_THROUGH,
            "Every node runs the version, and every gate has passed for the duration of a soak.",
        )
    there = [state for state in states.values() if state is not TargetState.EXCLUDED]
    if not there:
        return Ending(ExternalRolloutState.GIVEN_UP, "All its nodes have left the cluster.")
    if not is_touched:
        return Ending(ExternalRolloutState.GIVEN_UP, "No node must change for this version.")
    if not is_known and all(state is TargetState.CHANGED for state in there):
        reason = "The rollout ended before Quarterdeck observed it, so the earlier state of its nodes is unknown."
        return Ending(ExternalRolloutState.GIVEN_UP, reason)
    if now - moved_at > STILL:
        reason = f"Not shown within {spell(STILL)}: {unproven}" if unproven else f"No node changed for {spell(STILL)}."
        return Ending(ExternalRolloutState.GIVEN_UP, reason)
    return None
