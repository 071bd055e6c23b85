"""Why GPUs are not made ready for virtual machines. Pure.

gpu-operator, assets/state-vfio-manager (vfio-manage.sh of k8s-driver-manager: "failed to bind"); vgpu-device-manager
("no parent devices found for GPU", "unable to find configuration"; of vGPU 17 and newer, package vfio:
"error running sriov-manage", "no virtual functions found for GPU", "vGPU sysfs interface not found", "failed to create
… vGPU devices"; "unable to read MDEV devices directory": gpu-operator #591); kubevirt-gpu-device-plugin (IOMMU groups).
"""

from health.stack.causes.base import Cause, CauseRule, Saying, Signs, Weight, words

OF_SANDBOX = frozenset(
    {"vfio-manager", "sandbox-device-plugin", "sandbox-validator", "vgpu-device-manager", "kata-sandbox-device-plugin"}
)

VGPU_CONFIG = "nvidia.com/vgpu.config"
VGPU_STATE = "nvidia.com/vgpu.config.state"

NO_IOMMU = Saying(
    "no_iommu",
    words(r"iommu_groups?\b.*(no such file|not found|empty)",
          r"iommu.{0,40}(not enabled|disabled|not found|unsupported)",
          "no iommu group"),
    "The node has no IOMMU groups: a GPU cannot be passed through to a virtual machine.",
    "Switch on VT-d or AMD-Vi in the firmware and intel_iommu=on (or amd_iommu=on) iommu=pt on the kernel's command "
    "line, and reboot.",
    OF_SANDBOX,
)  # fmt: skip
NOT_BOUND = Saying(
    "vfio_not_bound",
    words("failed to bind.*vfio", "unable to bind.*vfio", "vfio-pci.*(device or resource busy|not found)"),
    "A GPU cannot be bound to vfio-pci: another driver holds it, or the module is not there.",
    "Look what uses it: lspci -nnk -d 10de: on the node names the driver. Then drain and reboot the node.",
    OF_SANDBOX,
)
NO_PARENTS = Saying(
    "vgpu_no_parents",
    words(r"no parent devices? found for gpu at (?:index|address)[: ]*'?(?P<gpu>[^'\s\"]+)"),
    "GPU {gpu} has no parent device for vGPUs: it has no virtual functions, or its driver has no mdev bus.",
    "On the host, look at /sys/class/mdev_bus, and at sriov-manage -e ALL where it is empty. From vGPU 17 on, drivers "
    "of Ada and newer have none: they need a vgpu-device-manager that knows their VFIO framework (its #195).",
    OF_SANDBOX,
)
NO_FUNCTIONS = Saying(
    "vgpu_no_functions",
    words("error running sriov-manage", "error enabling sr-iov virtual functions",
          r"no virtual functions found for gpu (?P<gpu>\S+)",
          "does not expose the vendor-specific vfio sr-iov interface"),
    "A GPU of this node has no virtual functions, of which vGPUs are made.",
    "Switch on SR-IOV, VT-d or AMD-Vi and Above 4G Decoding in the firmware. Then look at what sriov-manage -e ALL of "
    "the vGPU manager says, and whether that GPU can have vGPUs at all.",
    OF_SANDBOX,
)  # fmt: skip
NO_MANAGER = Saying(
    "vgpu_no_manager",
    words("vgpu sysfs interface not found", r"/sys/(bus/mdev/devices|class/mdev_bus)\S*: no such file"),
    "The driver of this node offers no vGPUs: it is not NVIDIA's vGPU manager, or that is not loaded.",
    "Look at the vGPU manager's pod on this node, and at lsmod for nvidia_vgpu_vfio. After it is loaded, set "
    "nvidia.com/vgpu.config to another value and back.",
    OF_SANDBOX,
)
TOO_MANY_VGPUS = Saying(
    "vgpu_too_many",
    words(r"failed to create (?P<count>\d+) (?P<type>\S+) vgpu devices"),
    "The GPU has no room for {count} vGPUs of the type {type}.",
    "Put fewer into the entry of the ConfigMap: nvidia-smi vgpu -s -v on the host says how many fit. Types with MIG "
    "need MIG mode and slices first.",
    OF_SANDBOX,
)
NO_VGPU = Saying(
    "vgpu_not_made",
    words("no parent devices found", "unable to (apply|find|select).*vgpu config", "error (applying|getting) vgpu",
          "failed to apply vgpu", "vgpu type.*not (supported|available)"),
    "The vGPU configuration that this node picks cannot be made.",
    "Look at nvidia.com/vgpu.config of the node, at the entry of that name in the ConfigMap, and whether the vGPU "
    "manager runs: nvidia-smi vgpu -s on the host lists the types.",
    OF_SANDBOX,
)  # fmt: skip
OF_VGPUS: tuple[CauseRule, ...] = (NO_PARENTS, NO_FUNCTIONS, NO_MANAGER, TOO_MANY_VGPUS, NO_VGPU)


def failed(signs: Signs) -> Cause | None:
    """nvidia.com/vgpu.config.state is success or failed; the manager goes on waiting (cloud-native-docs, PR 76)."""
    if signs.operand != "vgpu-device-manager" or signs.labels.get(VGPU_STATE) != "failed":
        return None
    if known := next((cause for rule in OF_VGPUS if (cause := rule(signs))), None):
        return known
    wanted = signs.labels.get(VGPU_CONFIG, "(none named)")
    return Cause(
        "vgpu_failed",
        Weight.WRONG,
        f"It could not make the vGPUs of the configuration {wanted}: {VGPU_STATE} is failed.",
        f"Read its log for the step; then set {VGPU_CONFIG} to another value and back.",
        signs.pod.telling if signs.pod else "",
    )


RULES: tuple[CauseRule, ...] = (NO_IOMMU, NOT_BOUND, *OF_VGPUS)
WHEN_READY: tuple[CauseRule, ...] = (failed,)
