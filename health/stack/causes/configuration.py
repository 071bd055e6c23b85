"""Why a container cannot be made as its pod describes it: nobody else's fault, whatever its pod waits for. Pure.

Reasons: kubernetes, pkg/kubelet/images and kuberuntime. containerd, pkg/cri/server: `path "/run/nvidia/validations" is
mounted on "/run" but it is not a shared mount` (gpu-operator #315); CRI-O says "shared or slave mount". CDI devices and
device nodes are missing at that moment, too (#425: `lstat /run/nvidia/driver/dev/nvidiactl: no such file`).
"""

from health.stack.causes import runtime
from health.stack.causes.base import Cause, CauseRule, Saying, Signs, Weight, words
from health.stack.causes.crash import describe

CONFIG = frozenset({"CreateContainerConfigError", "CreateContainerError"})

NOT_SHARED = Saying(
    "mount_not_shared",
    words(r'(?P<mount>/[^\s"\\]*)\\?"?( but it)? is not a shared'),
    "{mount} on this node is not a shared mount: what a driver's container mounts there would not be seen by others.",
    "On the node: mount --make-rshared {mount}. For good: where it is mounted at boot; under LXC or Docker, outside.",
)
NO_NODE = Saying(
    "device_node_missing",
    words(r"l?stat (?P<device>/\S*/nvidia\w*(-\w+)*): no such file"),
    "The device {device} is not on this node.",
    "Look whether the driver is loaded and nvidia-smi runs: it makes the device. Of modules that are loaded later "
    "(nvidia-uvm, nvidia-modeset): nvidia-modprobe -c0 -u -m.",
)
KNOWN: tuple[CauseRule, ...] = (NOT_SHARED, NO_NODE, *runtime.FIRST, *runtime.RULES)


def not_made(signs: Signs) -> Cause | None:
    pod = signs.pod
    if pod is None or pod.reason not in CONFIG:
        return None
    if known := next((cause for rule in KNOWN if (cause := rule(signs))), None):
        return known
    if pod.reason == "CreateContainerError":
        sentence, action = "cannot be made by the container runtime.", "What it says names the cause."
    else:
        sentence, action = "cannot be made as its pod describes it.", "A ConfigMap, a Secret or a key of it is missing."
    said = pod.message or pod.told_by_event
    return Cause("not_created", Weight.WRONG, f"{pod.of_it} {sentence}", action if said else describe(pod), said)


RULES: tuple[CauseRule, ...] = (not_made,)
