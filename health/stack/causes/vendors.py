"""Why the operands of other vendors do not come up. Pure.

ROCm/k8s-device-plugin, cmd/k8s-device-plugin/main.go (/sys/class/kfd is there only with the driver: #42),
cmd/k8s-node-labeller/main.go (#23); ROCm/device-metrics-exporter, rocpclient.go (#277, ROCm/gpu-operator #227);
ROCm/gpu-operator, internal/plugin ("amdgpu driver is not loaded"); intel-device-plugins-for-kubernetes #230, #260
("open /sys/class/drm: no such file or directory"); Habana's device plugin ("no habana devices on the system").
"""

from gpu.operands import AMD_DRA, AMD_EXPORTER, AMD_LABELLER, AMD_PLUGIN, GAUDI_PLUGIN, INTEL_DRA, INTEL_PLUGIN
from health.stack.causes.base import CauseRule, Saying, words

AMD = Saying(
    "amd_no_driver",
    words("(amdgpu|gim) driver is not loaded", r"/sys/(class/kfd|module/amdgpu)\S*: no such file",
          "fail to glob topology properties"),
    "The driver amdgpu is not loaded on this node.",
    "Where AMD's operator installs it (DeviceConfig, spec.driver.enable), look at its KMM module pods; else modprobe "
    "amdgpu on the node, and dmesg where it fails.",
    frozenset({AMD_PLUGIN, AMD_LABELLER, AMD_EXPORTER, AMD_DRA}),
    is_normal_at_first=True,
    alone="Look at the module pods of the DeviceConfig (KMM), where there is one; else modprobe amdgpu on the node, "
    "and dmesg where it fails.",
)  # fmt: skip
AMD_PROFILER = Saying(
    "amd_profiler",
    words(r"rocpclient\S*: .{0,40}signal: (aborted|segmentation fault)", "rocpclient has failed"),
    "AMD's profiler, which the exporter runs, crashes on this node.",
    "Leave the profiler's metrics out of the exporter's ConfigMap; newer exporters switch it off by themselves. Where "
    "rocm-smi hangs in the pod as well, drain the node and reboot it.",
    frozenset({AMD_EXPORTER}),
)
INTEL = Saying(
    "intel_no_driver",
    words(r"/sys/class/drm\S*: no such file", "no devices? matching"),
    "The node has no graphics driver of Intel's loaded (i915 or xe).",
    "On the node: modprobe i915 or xe, and linux-modules-extra where the kernel lacks them. Where it has no such GPU, "
    "keep the plugin away: intel.feature.node.kubernetes.io/gpu=true as its node selector.",
    frozenset({INTEL_PLUGIN, INTEL_DRA}),
)
GAUDI = Saying(
    "gaudi_no_driver",
    words("no habana devices", "failed detecting habana"),
    "It finds no Gaudi on this node: the driver habanalabs is not loaded, or does not know the board.",
    "Look at hl-smi on the node, and at dmesg; plugin and driver are of one release.",
    frozenset({GAUDI_PLUGIN}),
)

RULES: tuple[CauseRule, ...] = (AMD, AMD_PROFILER, INTEL, GAUDI)
