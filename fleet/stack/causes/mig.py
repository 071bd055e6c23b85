"""What the MIG manager says about a node by its label. Pure.

nvidia.com/mig.config.state is pending, rebooting, success or failed (mig-parted, pkg/mig/reconfigure/reconfigure.go).
"""

from fleet.operands import MIG_MANAGER
from fleet.stack.causes.base import Cause, Rule, Signs, Weight


def failed(signs: Signs) -> Cause | None:
    if signs.operand != MIG_MANAGER or signs.mig_state != "failed":
        return None
    said = signs.pod.telling if signs.pod else ""
    return Cause(
        "mig_failed",
        Weight.WRONG,
        f"It could not apply the MIG configuration {signs.mig_config or '(none named)'}: mig.config.state is failed.",
        "Look at its log for the step that failed. Most often a GPU was in use and could not be reset: free it, then "
        "set the label nvidia.com/mig.config to another value and back.",
        said,
    )


def changing(signs: Signs) -> Cause | None:
    if signs.operand != MIG_MANAGER or signs.mig_state not in ("pending", "rebooting"):
        return None
    doing = "is applying" if signs.mig_state == "pending" else "reboots the node to apply"
    return Cause(
        "mig_changing",
        Weight.WAITING,
        f"It {doing} the MIG configuration {signs.mig_config or '(none named)'}.",
        "The device plugin, GFD and DCGM pods are paused until it is done.",
    )


RULES: tuple[Rule, ...] = ()
WHEN_READY: tuple[Rule, ...] = (failed, changing)
