"""What the confidential computing manager says about a node by its label. Pure.

nvidia.com/cc.mode is what is wanted (on, off, devtools, ppcie), nvidia.com/cc.mode.state what is, or failed:
k8s-cc-manager, main.py, which also says "Some GPUs are not cc-capable" and ends (gpu-operator #1851: H200 before its
device was known).
"""

from health.stack.causes.base import Cause, CauseRule, Saying, Signs, Weight, words

CC_MANAGER = "cc-manager"
WANTED = "nvidia.com/cc.mode"
STATE = "nvidia.com/cc.mode.state"

NOT_CAPABLE = Saying(
    "cc_not_capable",
    words("gpus are not cc-capable", "devices do not support ppcie"),
    "A GPU of this node cannot do confidential computing, as far as this manager knows.",
    "Take a manager that knows the GPU, or set nvidia.com/cc.mode=off on the node.",
    frozenset({CC_MANAGER}),
)


def failed(signs: Signs) -> Cause | None:
    if signs.operand != CC_MANAGER or signs.labels.get(STATE) != "failed":
        return None
    if known := NOT_CAPABLE(signs):
        return known
    wanted = signs.labels.get(WANTED)
    mode = f"the mode {wanted}" if wanted else "its default mode"
    return Cause(
        "cc_failed",
        Weight.WRONG,
        f"It could not bring the GPUs into {mode}: {STATE} is failed.",
        "Read its log for the GPU and the step. The GPUs are free of other users first; then set "
        f"{WANTED} to another value and back, or reboot the node.",
        signs.pod.telling if signs.pod else "",
    )


RULES: tuple[CauseRule, ...] = (NOT_CAPABLE,)
WHEN_READY: tuple[CauseRule, ...] = (failed,)
