"""Commands of people. COMMANDS has the function of each verb of a plan, which returns a sentence about the effect."""

from collections.abc import Callable, Mapping

from rollouts.commands.affected_nodes import cordon_affected
from rollouts.commands.handover import hand_over
from rollouts.commands.live_checks import ask_start
from rollouts.commands.plan_control import abort, complete, halt, pause, resume, roll_back
from rollouts.commands.plan_drafts import discard

COMMANDS: Mapping[str, Callable[..., str | None]] = {
    "start": ask_start,
    "halt": halt,
    "pause": pause,
    "resume": resume,
    "rollback": roll_back,
    "cordon": cordon_affected,
    "abort": abort,
    "complete": complete,
    "handover": hand_over,
    "discard": discard,
}
