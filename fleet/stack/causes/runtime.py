"""Why no container starts with the NVIDIA runtime, or the toolkit cannot set it up. Pure.

- `no runtime for "nvidia" is configured` (containerd, in FailedCreatePodSandbox Events: gpu-operator #413, #549, #730,
  #759) and `failed to find runtime handler nvidia` (CRI-O): the runtime class exists, its handler does not.
- `unresolvable CDI devices nvidia.com/gpu=…`: the device is asked for by a name that no CDI file on the node has.
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

RULES: tuple[Rule, ...] = (NO_HANDLER, NO_RUNTIME_CLASS, CDI, RUNTIME_RESTART, RUNTIME_CONFIG, SANDBOX, MOUNT)
