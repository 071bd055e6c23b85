"""Why a device plugin, or what else asks NVML, sees no GPU or cannot offer them. Pure.

k8s-device-plugin: internal/rm/factory.go ("Incompatible strategy detected", earlier "Incompatible platform detected";
"could not load NVML library"), cmd/nvidia-device-plugin/main.go ("No devices found. Waiting indefinitely.", "unable to
load config"); issues #10, #82 ("Could not register device plugin: context deadline exceeded", "Could not contact
Kubelet, retrying."), #231 ("nvml: GPU is lost"), #637 ("nvml error: insufficient permissions"), #1228 (Running, and
allocatable is 0), #338 ("error getting device handle for index '0': Unknown Error"); kubernetes,
pkg/kubelet/cm/devicemanager ("requested number of devices unavailable"). GB10 shares its machine's memory and tells
none of its own: "error getting device memory: Not Supported" before plugin 0.17.4 (gpu-operator #1794), "GetMemoryInfo
… Not Supported" of the DRA driver before dra-driver-nvidia-gpu #1115. "Failed to initialize NVML: Unknown Error" is
what a container says that systemd took its devices from (gpu-operator #485). "error waiting for MPS daemon: error
checking MPS daemon health: …": k8s-device-plugin #1094.
The MPS daemon's own: "error setting SELinux context: lsetxattr … permission denied" (k8s-device-plugin #1105), "Server
95 exited with status 1" (#685, #1614). "Failed to initialize NVML: ERROR_UNKNOWN" of a container without rights to the
devices (HAMi #452). "failed to check for empty MIG-enabled devices: NVML error: Not Found" (gpu-feature-discovery #24).
"""

from dataclasses import replace

from gpu.operands import AMD_PLUGIN, DEVICE_PLUGIN, DRA_DRIVER, GAUDI_PLUGIN, GFD, INTEL_PLUGIN
from health.stack.causes import vendors
from health.stack.causes.base import Cause, CauseRule, PodSigns, Saying, Signs, Weight, words

PLUGINS = frozenset({DEVICE_PLUGIN, AMD_PLUGIN, INTEL_PLUGIN, GAUDI_PLUGIN})
DELETE_IT = "Then delete this pod: it looks once, when it starts."

MEMORY = Saying(
    "memory_not_reported",
    words(
        "(?<!ignoring )error getting device memory: not supported",
        "(getmemoryinfo|memory info|memory of device).*not supported",
    ),
    "The GPU has no memory of its own to tell of (GB10 shares the machine's), which this version takes for a failure.",
    "Take the device plugin 0.17.4 or newer: operator 25.10.0 brings it. Of the DRA driver: a release with its change "
    "#1115.",
    frozenset({DEVICE_PLUGIN, GFD, DRA_DRIVER}),
    alone="Take the device plugin 0.17.4 or newer; of the DRA driver: a release with its change #1115.",
)
MIG_STRATEGY = Saying(
    "mig_strategy",
    words("more than one mig device type present", "same migenabled value", "invalid mig configuration",
          "with migenabled=true was not configured correctly", "invalid mig strategy"),
    "The GPUs of this node are not all cut alike, or one has MIG on and no slice: its MIG strategy does not allow it.",
    "Cut all alike with nvidia.com/mig.config, or choose mig.strategy: mixed in the ClusterPolicy.",
    frozenset({DEVICE_PLUGIN, GFD}),
    alone="Cut all alike, or choose migStrategy: mixed for it.",
)  # fmt: skip
MIG_NOT_SEEN = Saying(
    "mig_not_seen",
    words(r"(empty mig-enabled devices|visiting mig device|mig resource labeler).*(not found|unknown error)"),
    "A GPU of this node has MIG on, and the driver does not show its slices to this container.",
    "Look at nvidia-smi -L and nvidia-smi mig -lgi on the node: slices are lost with a reboot. Apply the MIG layout "
    "again, then delete this pod.",
    frozenset({DEVICE_PLUGIN, GFD}),
)
MPS_SELINUX = Saying(
    "mps_selinux",
    words("(setting selinux context|lsetxattr).*(permission denied|not permitted)"),
    "SELinux on this node does not let it label the folder that it shares with its clients.",
    "Give it the rights (privileged, and seLinuxOptions of a type that may relabel), or share the GPUs by time slices "
    "here.",
    frozenset({"mps-control-daemon"}),
)
MPS_SERVER = Saying(
    "mps_server",
    words(r"server \d+ exited with status [1-9]", "server encountered a fatal exception",
          "failed to start ?: ?(invalid argument|operation not supported)"),
    "The MPS server does not start on the GPUs of this node: no client gets one.",
    "Look at the server's own log beside it (CUDA_MPS_LOG_DIRECTORY) and at NVRM lines in dmesg. Where it fails on one "
    "model of GPU only, share that by time slices.",
    frozenset({"mps-control-daemon"}),
)  # fmt: skip
MPS = Saying(
    "mps_not_ready",
    words("mps daemon.*(not ready|failed|error|timed out)", "(waiting for|send command to|connect to) (the )?mps"),
    "It waits for the MPS control daemon, which does not answer on this node.",
    "Look at its pod here: it runs where the node has nvidia.com/mps.capable=true, and needs /run/nvidia/mps.",
    frozenset({DEVICE_PLUGIN, "mps-control-daemon"}),
)
PRIVILEGES = Saying(
    "plugin_privileges",
    words("insufficient permissions", r"device-plugins/\S*: (connect: )?permission denied", "operation not permitted"),
    "It lacks the rights to ask the GPUs or to write the kubelet's device-plugins folder.",
    "Look at its security context (privileged, SYS_ADMIN under MIG), and at SELinux or AppArmor on the node.",
    frozenset({DEVICE_PLUGIN, GFD, "mps-control-daemon", AMD_PLUGIN, INTEL_PLUGIN}),
)
SOCKET = Saying(
    "plugin_socket",
    words("could not register device plugin", "could not contact kubelet", "failed to create fs watcher",
          "cannot register to kubelet", r"kubelet\.sock: (connect|connection)"),
    "It cannot register with the kubelet: nothing answers on kubelet.sock in /var/lib/kubelet/device-plugins.",
    "Look whether the kubelet runs, and whether its --root-dir is another one than the plugin mounts.",
    frozenset({DEVICE_PLUGIN, AMD_PLUGIN, INTEL_PLUGIN}),
)  # fmt: skip
SHARING_CONFIG = Saying(
    "sharing_config",
    words("unable to load config", "unable to parse config", "error parsing config", "unable to find config",
          "specified config .* does not exist"),
    "It cannot read the sharing configuration that this node picks.",
    "Look at the label nvidia.com/device-plugin.config of the node and the entry of that name in the ConfigMap.",
    frozenset({DEVICE_PLUGIN, GFD}),
)  # fmt: skip
STARTED_BEFORE = Saying(
    "started_before_driver",
    words("driver modules are not yet loaded, invoking"),
    "Its container was started before the driver's module was loaded, and so without the driver's files.",
    "Delete this pod once nvidia-smi runs on the node: it does not see the driver before (gpu-operator #2854).",
    alone="Delete this pod once nvidia-smi runs on the node: it does not see the driver before.",
)
NO_LIBRARY = Saying(
    "no_nvml",
    words("could not load nvml library", r"incompatible (strategy|platform) detected",
          "invalid device discovery strategy", "failed to initialize nvml", "nvml doesn't exist on this system",
          r"libnvidia-ml\.so\S*: cannot open"),
    "It does not see the driver's library: its container did not start with the NVIDIA runtime, or there is no driver.",
    "Look whether the toolkit is ready here, whether the pod has runtimeClassName nvidia, and whether {runtime} has a "
    "runtime of that name.",
    alone="Look whether the driver and the NVIDIA Container Toolkit are on the node, whether the pod has "
    "runtimeClassName nvidia, and whether {runtime} has a runtime of that name.",
)  # fmt: skip
OLD_LIBRARY = Saying(
    "nvml_too_old",
    words(r"undefined symbol: nvml", r"function_not_found", "nvml: function not found"),
    "It calls a function that the driver's library on this node does not have: the driver is too old for it.",
    "Take a newer driver, or an older release of this operand.",
)
NONE_FOUND = Saying(
    "plugin_no_devices",
    words("no devices found. waiting indefinitely"),
    "It runs and found no GPU when it started; it does not look again.",
    "Once nvidia-smi in the driver pod shows the GPUs, delete this pod.",
    frozenset({DEVICE_PLUGIN}),
    alone="Once nvidia-smi on the node shows the GPUs, delete this pod.",
)

GPU_LOST = Saying(
    "gpu_lost",
    words("gpu is lost", "fallen off the bus"),
    "A GPU of this node is lost: it no longer answers on the PCI bus.",
    "Look in the kernel's log for Xid 79. Drain the node and reboot it; if it is lost again, the board, its power or "
    "its slot is broken.",
)
NO_HANDLE = Saying(
    "gpu_no_handle",
    words("unable to determine the device handle", "(getting|get) device handle for", "nvml: unknown error for gpu"),
    "The driver lists a GPU that it cannot open: one GPU of this node does not answer, and so it offers none.",
    "Look in the kernel's log for NVRM and Xid lines of that GPU. Drain the node and reboot it; if it fails again, the "
    "board, its power or its slot is broken.",
)
NO_RIGHTS = Saying(
    "devices_refused",
    words("initialize nvml: (error_unknown|insufficient permissions)", r"nvml\.init: error_unknown"),
    "It sees the driver's library and may not use the GPU devices.",
    "Look at its security context (privileged), and whether nvidia-smi runs on the node. Then delete this pod.",
)
DEVICES_TAKEN = Saying(
    "devices_taken",
    words(r"(initialize nvml|nvml\.init): unknown error"),
    "Its container has lost its GPU devices: most often systemd read its units again and took them out of the cgroup.",
    "Delete this pod, and those of tenants that say the same. For good: links under /dev/char (do not set "
    "DISABLE_DEV_CHAR_SYMLINK_CREATION), or CDI.",
    alone="Delete this pod, and those of tenants that say the same. For good: nvidia-ctk system "
    "create-dev-char-symlinks --create-all at boot, or CDI.",
)
OPEN_FILES = Saying(
    "open_files",
    words("too many open files", "inotify_(init|add_watch)", "no space left on device.*inotify"),
    "The node's limit of inotify watches or open files is reached.",
    "On the node: raise fs.inotify.max_user_instances and fs.inotify.max_user_watches (sysctl).",
)
NONE_FREE = Saying(
    "no_gpu_free",
    words("requested number of devices unavailable", "no healthy devices present"),
    "The kubelet had no GPU to give to it: all are held, or none is healthy.",
    "Look who holds the node's GPUs, and at the device plugin. After a restart of the kubelet pods are admitted before "
    "the plugin has registered again: then delete this pod.",
)


def offers_nothing(signs: Signs) -> Cause | None:
    """It is ready, and the node offers no GPU of any kind. Its log says why where one was read."""
    if signs.operand not in PLUGINS or not signs.pod or not signs.pod.is_ready or signs.gpus_allocatable:
        return None
    if not signs.gpus_expected:
        return _never_offered(signs, signs.pod)
    return Cause(
        "plugin_offers_nothing",
        Weight.WRONG,
        f"It is ready, but the node offers none of the {signs.gpus_expected} it once did.",
        "Delete this pod: after a kubelet restart, or when all GPUs were sick, it may not register again by itself.",
        signs.pod.telling,
    )


def _never_offered(signs: Signs, pod: PodSigns) -> Cause | None:
    """Without FAIL_ON_INIT_ERROR it stays ready where it finds no driver, and looks only once (#1080, #1220, #1552)."""
    if not pod.is_overdue or not (signs.is_gpu_node if signs.operand == DEVICE_PLUGIN else signs.is_of_vendor):
        return None
    if known := next((cause for rule in (*RULES, *vendors.RULES) if (cause := rule(signs))), None):
        return replace(known, sentence=f"It is ready, but the node offers no GPU. {known.sentence}")
    if signs.operand != DEVICE_PLUGIN:
        return Cause(
            "plugin_offered_never",
            Weight.WRONG,
            "It is ready, but the node offers no GPU: it found none when it started, or could not register.",
            f"Look whether the driver is loaded on the node, and at this pod's log. {DELETE_IT}",
            pod.telling,
        )
    namespace, _, name = pod.name.partition("/")
    return Cause(
        "plugin_offered_never",
        Weight.WRONG,
        "It is ready, but the node offers no GPU: it found none when it started, and does not look again.",
        f"kubectl -n {namespace} logs {name}: where it says that NVML cannot be loaded, its container did not start "
        "with the NVIDIA runtime (look at its runtimeClassName), or there is no driver. Then delete this pod.",
        pod.telling,
    )


RULES: tuple[CauseRule, ...] = (
    GPU_LOST,
    NO_HANDLE,
    NONE_FREE,
    OPEN_FILES,
    MEMORY,
    MIG_NOT_SEEN,
    MIG_STRATEGY,
    MPS_SELINUX,
    MPS_SERVER,
    MPS,
    NO_RIGHTS,
    DEVICES_TAKEN,
    SHARING_CONFIG,
    PRIVILEGES,
    SOCKET,
    OLD_LIBRARY,
    STARTED_BEFORE,
    NO_LIBRARY,
    NONE_FOUND,
)
WHEN_READY: tuple[CauseRule, ...] = (offers_nothing,)
