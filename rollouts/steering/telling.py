"""Who carries each verb of a plan out. An answer is a sentence for the person: what is in force, and what follows."""

from collections.abc import Callable, Mapping

from rollouts.steering import commands
from rollouts.steering.drafting import discard
from rollouts.steering.handing_over import hand_over
from rollouts.steering.live_checking import ask_start

COMMANDS: Mapping[str, Callable[..., str | None]] = {
    "start": ask_start,
    "halt": commands.halt,
    "pause": commands.pause,
    "resume": commands.resume,
    "rollback": commands.roll_back,
    "abort": commands.abort,
    "complete": commands.complete,
    "handover": hand_over,
    "discard": discard,
}
