"""Why a device plugin, or what else asks NVML, sees no GPU or cannot offer them. Pure.

k8s-device-plugin: internal/rm/factory.go ("Incompatible strategy detected", earlier "Incompatible platform detected";
"could not load NVML library"), cmd/nvidia-device-plugin/main.go ("No devices found. Waiting indefinitely.", "unable to
load config"); issues #10, #82 ("Could not register device plugin: context deadline exceeded", "Could not contact
Kubelet, retrying."), #231 ("nvml: GPU is lost"), #637 ("nvml error: insufficient permissions"), #1228 (Running, and
allocatable is 0); kubernetes, pkg/kubelet/cm/devicemanager ("requested number of devices unavailable").
"""

from fleet.operands import DEVICE_PLUGIN, GFD
from fleet.stack.causes.base import Cause, PodSigns, Rule, Saying, Signs, Weight, words

PRIVILEGES = Saying(
    "plugin_privileges",
    words("insufficient permissions", r"device-plugins/\S*: permission denied", "operation not permitted"),
    "It lacks the rights to ask the GPUs or to write the kubelet's device-plugins folder.",
    "Look at its security context (privileged, SYS_ADMIN under MIG), and at SELinux or AppArmor on the node.",
    frozenset({DEVICE_PLUGIN, GFD, "mps-control-daemon"}),
)
SOCKET = Saying(
    "plugin_socket",
    words("could not register device plugin", "could not contact kubelet", "failed to create fs watcher",
          r"kubelet\.sock: (connect|connection)"),
    "It cannot register with the kubelet: nothing answers on kubelet.sock in /var/lib/kubelet/device-plugins.",
    "Look whether the kubelet runs, and whether its --root-dir is another one than the plugin mounts.",
    frozenset({DEVICE_PLUGIN}),
)  # fmt: skip
SHARING_CONFIG = Saying(
    "sharing_config",
    words("unable to load config", "unable to parse config", "error parsing config", "unable to find config",
          "specified config .* does not exist"),
    "It cannot read the sharing configuration that this node picks.",
    "Look at the label nvidia.com/device-plugin.config of the node and the entry of that name in the ConfigMap.",
    frozenset({DEVICE_PLUGIN, GFD}),
)  # fmt: skip
NO_LIBRARY = Saying(
    "no_nvml",
    words("could not load nvml library", r"incompatible (strategy|platform) detected", "failed to initialize nvml",
          r"libnvidia-ml\.so\S*: cannot open"),
    "It does not see the driver's library: its container did not start with the NVIDIA runtime, or there is no driver.",
    "Look whether the toolkit is ready here, whether the pod has runtimeClassName nvidia, and whether {runtime} has a "
    "runtime of that name.",
)  # fmt: skip
NONE_FOUND = Saying(
    "plugin_no_devices",
    words("no devices found. waiting indefinitely"),
    "It runs and found no GPU when it started; it does not look again.",
    "Once nvidia-smi in the driver pod shows the GPUs, delete this pod.",
    frozenset({DEVICE_PLUGIN}),
)

GPU_LOST = Saying(
    "gpu_lost",
    words("gpu is lost", "fallen off the bus"),
    "A GPU of this node is lost: it no longer answers on the PCI bus.",
    "Look in the kernel's log for Xid 79. Drain the node and reboot it; if it is lost again, the board, its power or "
    "its slot is broken.",
)
NONE_FREE = Saying(
    "no_gpu_free",
    words("requested number of devices unavailable", "no healthy devices present"),
    "The kubelet had no GPU to give to it: all are held, or none is healthy.",
    "Look who holds the node's GPUs, and at the device plugin. After a restart of the kubelet pods are admitted before "
    "the plugin has registered again: then delete this pod.",
)


def offers_nothing(signs: Signs) -> Cause | None:
    """It is ready, and the node offers no GPU of any kind, where it once did."""
    if signs.operand != DEVICE_PLUGIN or not signs.pod or not signs.pod.is_ready or signs.gpus_allocatable:
        return None
    if not signs.gpus_expected:
        return _never_offered(signs, signs.pod)
    return Cause(
        "plugin_offers_nothing",
        Weight.WRONG,
        f"It is ready, but the node offers none of the {signs.gpus_expected} it once did.",
        "Delete this pod: after a kubelet restart, or when all GPUs were sick, it may not register again by itself.",
    )


def _never_offered(signs: Signs, pod: PodSigns) -> Cause | None:
    """Without FAIL_ON_INIT_ERROR it stays ready where it finds no driver, and looks only once (#1080, #1220, #1552)."""
    if not signs.is_gpu_node or not pod.is_overdue:
        return None
    namespace, _, name = pod.name.partition("/")
    return Cause(
        "plugin_offered_never",
        Weight.WRONG,
        "It is ready, but the node offers no GPU: it found none when it started, and does not look again.",
        f"kubectl -n {namespace} logs {name}: where it says that NVML cannot be loaded, its container did not start "
        "with the NVIDIA runtime (look at its runtimeClassName), or there is no driver. Then delete this pod.",
    )


RULES: tuple[Rule, ...] = (GPU_LOST, NONE_FREE, PRIVILEGES, SOCKET, SHARING_CONFIG, NO_LIBRARY, NONE_FOUND)
WHEN_READY: tuple[Rule, ...] = (offers_nothing,)
