"""Who carries each verb of a plan out. An answer is a sentence for the person: what is in force, and what follows."""

from collections.abc import Callable, Mapping

from rollouts.commands import plan_control
from rollouts.commands.handover import hand_over
from rollouts.commands.live_checks import ask_start
from rollouts.commands.plan_drafts import discard

COMMANDS: Mapping[str, Callable[..., str | None]] = {
    "start": ask_start,
    "halt": plan_control.halt,
    "pause": plan_control.pause,
    "resume": plan_control.resume,
    "rollback": plan_control.roll_back,
    "abort": plan_control.abort,
    "complete": plan_control.complete,
    "handover": hand_over,
    "discard": discard,
}
