"""The function that carries out each verb of a plan. It answers with a sentence about the effect."""

from collections.abc import Callable, Mapping

from rollouts.commands import plan_control
from rollouts.commands.affected_nodes import cordon_affected
from rollouts.commands.handover import hand_over
from rollouts.commands.live_checks import ask_start
from rollouts.commands.plan_drafts import discard

COMMANDS: Mapping[str, Callable[..., str | None]] = {
    "start": ask_start,
    "halt": plan_control.halt,
    "pause": plan_control.pause,
    "resume": plan_control.resume,
    "rollback": plan_control.roll_back,
    "cordon": cordon_affected,
    "abort": plan_control.abort,
    "complete": plan_control.complete,
    "handover": hand_over,
    "discard": discard,
}
