"""Why no container starts with the NVIDIA runtime, or the toolkit cannot set it up. Pure.

- `no runtime for "nvidia" is configured` (containerd, in FailedCreatePodSandbox Events: gpu-operator #413, #549, #730,
  #759) and `failed to find runtime handler nvidia` (CRI-O): the runtime class exists, its handler does not.
- `unresolvable CDI devices nvidia.com/gpu=…`: the device is asked for by a name that no CDI file on the node has.
- libnvidia-container: "initialization error: nvml error: driver not loaded", "… driver/library version mismatch"
  (gpu-operator #898), "driver rpc error: timed out", "requirement error: unsatisfied condition: cuda>=12.4, …".
- nvidia-container-toolkit, cmd/nvidia-ctk-installer: "unable to setup runtime: unable to restart containerd: …".
"""

from fleet.operands import TOOLKIT
from fleet.stack.causes.base import Rule, Saying, words

NO_HANDLER = Saying(
    "no_runtime_handler",
    words(r'no runtime for \\?["“]nvidia', "failed to find runtime handler nvidia"),
    "{runtime} on this node knows no runtime named nvidia, although the runtime class asks for it.",
    "The toolkit writes it into {runtime}'s configuration and restarts it: look whether the toolkit is ready here, "
    "whether it writes the file that {runtime} reads, and whether something overwrote that since.",
)
NO_RUNTIME_CLASS = Saying(
    "no_runtime_class",
    words(r'runtimeclass(es)?\S* \\?"?nvidia\S* not found', r'runtimeclass "nvidia" not found'),
    "The cluster has no runtime class named nvidia.",
    "The operator makes it: look at the ClusterPolicy's state, and at who deleted the RuntimeClass.",
)
CDI = Saying(
    "cdi_unresolvable",
    words("unresolvable cdi devices", "cdi device injection failed", "failed to inject cdi devices"),
    "A device was asked for by a CDI name that no file on this node has.",
    "The toolkit and the device plugin write those files to /var/run/cdi: look whether both are ready and agree on "
    "CDI (ClusterPolicy spec.cdi), and restart the one that changed last.",
)
LIBRARY_MISMATCH = Saying(
    "library_mismatch",
    words("driver/library version mismatch"),
    "The driver's library on this node is of another version than its module in the kernel: the driver was updated "
    "while the old one was loaded.",
    "No new container gets a GPU until the module is loaded anew: drain the node and reboot it, or, where the operator "
    "installs the driver, delete the driver pod. Keep unattended upgrades away from a host's driver.",
)
NO_MODULE = Saying(
    "driver_module_missing",
    words("nvml error: driver not loaded", "initialization error: driver error: failed to process request"),
    "The driver's module is not loaded on this node: no container gets a GPU.",
    "Look at the driver pod, or, where the driver is the host's, at dmesg and modprobe nvidia on the node.",
)
NO_ANSWER = Saying(
    "driver_no_answer",
    words("driver rpc error: timed out"),
    "The driver on this node does not answer in time.",
    "Look in the kernel's log for NVRM and Xid lines: a GPU that hangs. Without the persistence daemon, every start of "
    "a container takes seconds per GPU.",
)
REQUIREMENT = Saying(
    "cuda_requirement",
    words("requirement error: unsatisfied condition"),
    "The image asks for a newer driver than this node has: its container is not started.",
    "What is said names the CUDA version that it asks for. Take a newer driver, or an older image.",
)
RUNTIME_GONE = Saying(
    "runtime_gone",
    words(r"nvidia-container-runtime\S* no such file"),
    "{runtime} is to start containers with the NVIDIA runtime, whose program is not on this node.",
    "The toolkit installs it to /usr/local/nvidia/toolkit: look whether the toolkit is ready here, or was removed and "
    "left its entry in {runtime}'s configuration.",
)
RUNTIME_RESTART = Saying(
    "runtime_restart",
    words(r"unable to (restart|configure|signal) (containerd|cri-?o|docker)", r"unable to dial.*(containerd|crio)",
          "unable to setup runtime"),
    "The toolkit cannot set up {runtime} on this node: it writes its configuration, but cannot make it read it.",
    "Look at the paths in the toolkit's environment (CONTAINERD_CONFIG, CONTAINERD_SOCKET, RUNTIME_CONFIG_SOURCE): "
    "K3s, RKE2 and MicroK8s keep them elsewhere.",
    frozenset({TOOLKIT}),
)  # fmt: skip
RUNTIME_CONFIG = Saying(
    "runtime_config",
    words(r"unable to (load|flush|update|parse) config", "unsupported config version", r"toml: "),
    "The toolkit cannot read or write {runtime}'s configuration on this node.",
    "Look at that file on the node: what the toolkit says names the line or the path.",
    frozenset({TOOLKIT}),
)
SANDBOX = Saying(
    "sandbox",
    words("failed to create pod sandbox"),
    "{runtime} on this node cannot start the pod's sandbox.",
    "What it says names the cause: network plugin, cgroups, or the runtime itself.",
)
MOUNT = Saying(
    "mount",
    words("mountvolume.setup failed", "unable to attach or mount volumes"),
    "A volume of the pod cannot be mounted on this node.",
    "What is said names the volume: most often a ConfigMap, Secret or host path that is not there.",
)

RULES: tuple[Rule, ...] = (
    NO_HANDLER,
    NO_RUNTIME_CLASS,
    CDI,
    LIBRARY_MISMATCH,
    NO_MODULE,
    NO_ANSWER,
    REQUIREMENT,
    RUNTIME_GONE,
    RUNTIME_RESTART,
    RUNTIME_CONFIG,
    SANDBOX,
    MOUNT,
)
