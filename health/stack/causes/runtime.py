"""Why no container starts with the NVIDIA runtime, or the toolkit cannot set it up. Pure.

- `no runtime for "nvidia" is configured` (containerd, in FailedCreatePodSandbox Events: gpu-operator #413, #549, #730,
  #759) and `failed to find runtime handler nvidia` (CRI-O): the runtime class exists, its handler does not.
- `unresolvable CDI devices nvidia.com/gpu=…`: the device is asked for by a name that no CDI file on the node has.
- libnvidia-container: "initialization error: nvml error: driver not loaded", "… driver/library version mismatch"
  (gpu-operator #898), "driver rpc error: timed out", "requirement error: unsatisfied condition: cuda>=12.4, …".
- nvidia-container-toolkit, cmd/nvidia-ctk-installer: "unable to setup runtime: unable to restart containerd: …".
- files of a driver that is gone: `error mounting "/run/nvidia/driver/usr/lib/…/libnvidia-egl-gbm.so.1.1.1" to rootfs …
  no such file or directory` (gpu-operator #778), "mount error: stat failed: …".
- libnvidia-container: "ldcache error: process /sbin/ldconfig terminated with signal 9" (k8s-device-plugin #1400), "…
  failed with error code: 1" (libnvidia-container #177), "detection error: nvml error: unknown error"
  (volcano-vgpu-device-plugin #123). Of CDI's hook: "No help topic for 'disable-device-node-modification'"
  (dra-driver-nvidia-gpu #568). CRI-O says no more of a hook than its exit code (gpu-operator #1598).
- a runtime that was removed: "fork/exec /etc/docker-runtimes.d/nvidia: no such file" (nvidia-container-toolkit #145).
- a toolkit that is ended by the restart that it asked for: gpu-operator #456, #399, nvidia-container-toolkit #39.
- Docker: "unknown or invalid runtime name: nvidia", "could not select device driver "nvidia" with capabilities".
- "failed to add device rules: unable to find any existing device filters attached to the cgroup" (libnvidia-container
  #154; with #176 and nvidia-container-toolkit #139, which says what the latest release does); "cgroup subsystem devices
  not found" (k8s-device-plugin #324).
"""

from gpu.operands import TOOLKIT
from health.stack.causes.base import Cause, CauseRule, Saying, Signs, words
from kube.log_lines import LineWeight, weight

NO_HANDLER = Saying(
    "no_runtime_handler",
    words(
        r'no runtime for \\?["“]nvidia',
        "failed to find runtime handler nvidia",
        r'runtimehandler \\?"nvidia\S*" not supported',
    ),
    "{runtime} on this node knows no runtime named nvidia, although the runtime class asks for it.",
    "The toolkit writes it into {runtime}'s configuration and restarts it: look whether the toolkit is ready here, "
    "whether it writes the file that {runtime} reads, and whether something overwrote that since.",
    alone="On the node: nvidia-ctk runtime configure --runtime={runtime}, then restart {runtime}.",
)
NO_DOCKER_RUNTIME = Saying(
    "docker_no_nvidia",
    words(r"unknown or invalid runtime name: nvidia", r'could not select device driver \\?"(nvidia)?\\?" with capab'),
    "Docker on this node has no NVIDIA runtime: NVIDIA's container toolkit is not there, or not in its configuration.",
    "Look whether the toolkit is ready here and wrote /etc/docker/daemon.json, and whether Docker was restarted since.",
    alone="On the node: install the NVIDIA Container Toolkit, then nvidia-ctk runtime configure --runtime=docker, and "
    "restart Docker.",
)
NO_RUNTIME_CLASS = Saying(
    "no_runtime_class",
    words(r'runtimeclass(es)?\S* \\?"?nvidia\S* not found', r'runtimeclass "nvidia" not found'),
    "The cluster has no runtime class named nvidia.",
    "The operator makes it: look at the ClusterPolicy's state, and at who deleted the RuntimeClass.",
    alone="Make a RuntimeClass nvidia with handler nvidia, or take runtimeClassName out of the pod.",
)
CDI_OF_OTHERS = Saying(
    "cdi_of_others",
    words(
        r"unresolvable cdi devices? (?P<device>(?!(?:management\.|runtime\.)?nvidia\.com/gpu)[\w.-]+/[\w.-]+=[^\s,\"]+)"
    ),
    "No CDI file on this node has the device {device}.",
    "Look at the driver or plugin that offers this device: it writes the file, and a reboot removes /var/run/cdi. "
    "Then delete the pod, so that the device is prepared again.",
)
CDI = Saying(
    "cdi_unresolvable",
    words("unresolvable cdi devices", "cdi device injection failed", "failed to inject cdi devices"),
    "A device was asked for by a CDI name that no file on this node has.",
    "The toolkit and the device plugin write those files to /var/run/cdi: look whether both are ready and agree on "
    "CDI (ClusterPolicy spec.cdi), and restart the one that changed last.",
    alone="On the node: nvidia-ctk cdi list says which there are, nvidia-ctk cdi generate writes them anew.",
)
LIBRARY_MISMATCH = Saying(
    "library_mismatch",
    words("driver/library version mismatch"),
    "The driver's library on this node is of another version than its module in the kernel: the driver was updated "
    "while the old one was loaded.",
    "No new container gets a GPU until the module is loaded anew: drain the node and reboot it, or, where the operator "
    "installs the driver, delete the driver pod. Keep unattended upgrades away from a host's driver.",
    alone="No new container gets a GPU until the module is loaded anew: drain the node and reboot it. Keep unattended "
    "upgrades away from the driver.",
)
NO_MODULE = Saying(
    "driver_module_missing",
    words(r"nvml: driver.not.loaded", "nvml error: driver not loaded", "error_driver_not_loaded",
          "initialization error: driver error: failed to process request"),
    "The driver's module is not loaded on this node: no container gets a GPU.",
    "Look at the driver pod, or, where the driver is the host's, at dmesg and modprobe nvidia on the node.",
    alone="On the node: modprobe nvidia, and dmesg where it fails.",
)  # fmt: skip
NO_ANSWER = Saying(
    "driver_no_answer",
    words("driver (rpc )?error: timed out"),
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
    words(
        r"nvidia-container-runtime\S* no such file",
        r'exec: \\?"[^"]*nvidia-container-runtime[^"]*\\?": (executable file not found|stat )',
        r"fork/exec /\S*nvidia[^/\s]*: no such file",
    ),
    "{runtime} is to start containers with the NVIDIA runtime, whose program is not on this node.",
    "The toolkit installs it to /usr/local/nvidia/toolkit: look whether the toolkit is ready here, or was removed and "
    "left its entry in {runtime}'s configuration.",
    alone="Install the NVIDIA Container Toolkit on the node, or take its entry out of {runtime}'s configuration.",
)
STALE_FILE = Saying(
    "driver_file_gone",
    words(
        r'error mounting \\?"(?P<file>/[^"\\]*\.so[^"\\]*)\\?".*no such file',
        r"mount error: .*(stat failed|file creation failed).*\.so",
        r"failed to (stat|fulfil mount request).*\.so.*no such file",
    ),
    "{runtime} mounts a file of the driver into the container that is not on this node: what lists the driver's files "
    "was written for another version.",
    "Delete the toolkit's pod of this node, then this one: the CDI files in /var/run/cdi are written anew. A driver on "
    "the host that was updated needs a reboot first.",
    alone="On the node: nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml, and ldconfig; then delete this pod.",
)
DEVICE_FILTER = Saying(
    "cgroup_devices",
    words("device filters attached to the cgroup", "failed to add device rules", "cgroup subsystem devices not found",
          "unable to (generate|create|replace).*device filter"),
    "The container is not given its devices: NVIDIA's hook cannot change the device filter of its cgroup.",
    "Take a newer NVIDIA Container Toolkit, which no longer changes it, or CDI. In LXC or without root: no-cgroups = "
    "true in /etc/nvidia-container-runtime/config.toml.",
)  # fmt: skip
CGROUP_DRIVER = Saying(
    "cgroup_driver",
    words(r"/sys/fs/cgroup/\S*/devices\.allow: no such file"),
    "NVIDIA's hook does not find the container's cgroup: {runtime} starts it with another cgroup driver than the "
    "kubelet's.",
    "Give the runtime nvidia in {runtime}'s configuration the same SystemdCgroup as runc has there and the kubelet's "
    "cgroupDriver asks for, and restart {runtime}.",
)
CDI_SPEC = Saying(
    "cdi_not_written",
    words(r"failed to (generate|create|save|write)( \S+)? cdi spec", r"unable to (generate|create|write) cdi spec",
          r"failed to locate libcuda\.so", r"pattern libcuda\.so\S* not found"),
    "It cannot list the driver's files for containers (CDI): the driver's libraries are not where it looks for them.",
    "Look whether the driver is complete where it is said to be: the operator's in /run/nvidia/driver, the host's in "
    "/ (NVIDIA_DRIVER_ROOT).",
    alone="Look whether the driver is complete on the node, and where the plugin is told that it is "
    "(NVIDIA_DRIVER_ROOT).",
)  # fmt: skip
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
    words(r"unable to (load|flush|update|parse) config", "unsupported config version", r"toml: ",
          r"(unable to|failed to|error|cannot) .{0,40}(load|read|get)\w* .{0,40}config",
          "config dump.*(exit|not found)"),
    "The toolkit cannot read or write {runtime}'s configuration on this node.",
    "Look at that file on the node: what the toolkit says names the line or the path. Where it is not to ask {runtime} "
    "for it: RUNTIME_CONFIG_SOURCE=file.",
    frozenset({TOOLKIT}),
)  # fmt: skip
RUNTIME_DOWN = Saying(
    "runtime_down",
    words(r"(containerd|crio|cri-dockerd|docker)\.sock: connect: (connection refused|no such file)"),
    "{runtime} does not answer on this node: no container can be started there.",
    "On the node: systemctl status {runtime}, and its journal. After the toolkit wrote its configuration it is "
    "restarted: what it cannot read of it, it says there.",
    alone="On the node: systemctl status {runtime}, and its journal.",
)
LOAD_LIBRARY = Saying(
    "driver_library_missing",
    words(r"load library failed: (?P<library>lib\S+?):"),
    "The library {library} of the driver is not where the container toolkit looks for it on this node.",
    "Look whether the driver is complete (nvidia-smi on the node), and at the driver's root in the toolkit's "
    "configuration: /run/nvidia/driver for the operator's driver, / for the host's.",
    alone="Look whether the driver is complete (nvidia-smi on the node), and run ldconfig there.",
)
LDCONFIG = Saying(
    "toolkit_ldconfig",
    words(r"ldcache error: process (?P<program>\S+) (?P<end>terminated with signal \d+|failed with error code: \d+)"),
    "NVIDIA's container toolkit runs {program} in each new container, and it {end}.",
    "Look at the entry ldconfig in the toolkit's config.toml: with @ before the path it is the host's own, which on "
    "Ubuntu is /sbin/ldconfig.real. An update of the host may have changed it. CDI runs the container without it.",
)
NVML_UNKNOWN = Saying(
    "gpu_unreadable",
    words(r"(detection|initialization) error: nvml error: unknown error"),
    "NVIDIA's container toolkit cannot read a GPU of this node: no container gets one.",
    "Look at nvidia-smi on the node, and in the kernel's log for NVRM and Xid lines of a GPU that does not answer. "
    "Drain the node and reboot it.",
)
NVML_RIGHTS = Saying(
    "toolkit_no_rights",
    words(r"(detection|initialization) error: nvml error: insufficient permissions"),
    "NVIDIA's container toolkit may not open the GPU devices of this node: no container gets one.",
    "Look at owner and mode of /dev/nvidia* on the node (NVreg_DeviceFileMode of the driver), and at SELinux or "
    "AppArmor there: the toolkit opens them as nobody (user in its config.toml).",
)
NO_ROOT = Saying(
    "driver_root_gone",
    words("change root failed: no such file"),
    "NVIDIA's container toolkit looks for the driver below a folder that is not on this node.",
    "Look at root in the toolkit's config.toml on the node: /run/nvidia/driver is there only while a driver pod runs, "
    "and / is for a driver of the host. A configuration that an earlier installation left comes first, too.",
    alone="Look at root in /etc/nvidia-container-runtime/config.toml: / is for a driver of the host.",
)
HOOK_TOO_OLD = Saying(
    "toolkit_too_old",
    words(r"no help topic for '(?P<command>[\w-]+)'"),
    "NVIDIA's hook on this node does not know {command}: it is older than what wrote the CDI file.",
    "Update the NVIDIA Container Toolkit on the node (nvidia-ctk --version), then delete the pod of the driver or "
    "plugin that writes the CDI files, and this one.",
)
HOOK_EXIT = Saying(
    "toolkit_hook",
    words(
        r"error executing hook `?(?P<hook>/\S*nvidia[^`\s]*)`?",
        "nvidia-container-runtime did not terminate successfully",
    ),
    "NVIDIA's container toolkit cannot prepare the container on this node, and {runtime} gives only its exit code.",
    "The reason is in the journal of {runtime} on the node. Look whether nvidia-smi runs there, and whether the "
    "toolkit is of a release that knows the driver and {runtime}.",
)
ENDED = Saying(
    "toolkit_ended",
    words(r'msg="?(cleaning up runtime|shutting down)'),
    "The toolkit set up {runtime}, was told to end, and undid it: most often, {runtime} ends it as it is restarted.",
    "Look at the journal of {runtime} and of the kubelet at that moment. A newer toolkit may know this {runtime}; with "
    "the toolkit's env RUNTIME_CONFIG_SOURCE and CONTAINERD_RESTART_MODE=none it leaves the restart to you.",
    frozenset({TOOLKIT}),
)


def ended(signs: Signs) -> Cause | None:
    """Where its log has no error: else it ends because of that."""
    cause = ENDED(signs)
    is_told = signs.pod is not None and weight(signs.pod.telling or " ") >= LineWeight.WORDED
    return None if is_told else cause


NO_PROGRAM = Saying(
    "no_such_program",
    words(r'exec: \\?"(?P<program>[^"\\]+)\\?": (executable file not found|stat .*no such file)'),
    "The container cannot be started: {program} is not in it.",
    "Look whether image and command are of one version. nvidia-smi is put in by the NVIDIA runtime: here it was not.",
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

HOOK = Saying(
    "container_toolkit",
    words(r"nvidia-container-cli\S*: (?P<error>.{1,160})", r"nvidia-container-runtime\S*: .{0,60}(error|fail).*"),
    "NVIDIA's container toolkit cannot prepare the container on this node.",
    "The line names the step. Look at the driver (nvidia-smi on the node) and at the toolkit's pod.",
    alone="The line names the step. Look at the driver (nvidia-smi on the node) and at nvidia-container-cli info.",
)
NO_RUNC = Saying(
    "container_not_created",
    words(r"failed to (create|start) (containerd (task|container)|shim task)", "oci runtime create failed",
          "container_linux.go.*starting container process caused"),
    "{runtime} cannot create its container on this node.",
    "The line names the step: a file, a device or a mount that is not there, or a command that the image lacks.",
)  # fmt: skip
# What others' rules would take for a lack of rights or of the library.
FIRST: tuple[CauseRule, ...] = (
    CGROUP_DRIVER,
    DEVICE_FILTER,
    STALE_FILE,
    LIBRARY_MISMATCH,
    NO_MODULE,
    LOAD_LIBRARY,
    LDCONFIG,
    NO_ROOT,
    NVML_RIGHTS,
    NVML_UNKNOWN,
    HOOK_TOO_OLD,
    CDI_SPEC,
)
RULES: tuple[CauseRule, ...] = (
    NO_HANDLER,
    NO_DOCKER_RUNTIME,
    NO_RUNTIME_CLASS,
    CDI_OF_OTHERS,
    CDI,
    NO_ANSWER,
    REQUIREMENT,
    RUNTIME_GONE,
    RUNTIME_CONFIG,
    RUNTIME_RESTART,
    RUNTIME_DOWN,
    HOOK_EXIT,
    NO_PROGRAM,
    SANDBOX,
    MOUNT,
)


def not_created(signs: Signs) -> Cause | None:
    """The line says the step, and nobody knows more of it. One that has a log ran: an Event of that is over."""
    return None if signs.pod is None or signs.pod.log else HOOK(signs) or NO_RUNC(signs)


LAST: tuple[CauseRule, ...] = (not_created,)
