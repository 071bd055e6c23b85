"""Operands by their `app` label (gpu-operator assets/*), with the node label that admits each."""

TOOLKIT = "nvidia-container-toolkit-daemonset"
DEVICE_PLUGIN = "nvidia-device-plugin-daemonset"
GFD = "gpu-feature-discovery"
DCGM = "nvidia-dcgm"
DCGM_EXPORTER = "nvidia-dcgm-exporter"
MIG = "nvidia-mig-manager"
MPS = "nvidia-device-plugin-mps-control-daemon"
DRA = "nvidia-dra-driver-kubelet-plugin"
DRA_CHART = "nvidia-dra-driver-gpu-kubelet-plugin"  # of the DRA driver's own chart, beside a ClusterPolicy
DCGM_EXPORTER_DRA = "nvidia-dcgm-exporter-dra"
OWN_DCGM_EXPORTER = "dcgm-exporter"  # of its own chart, which no operator manages
DRA_VALIDATOR = "nvidia-dra-validator"  # a DaemonSet's name: its pods say the other validator's `app`
VALIDATOR = "nvidia-operator-validator"

GATES = {
    VALIDATOR: "nvidia.com/gpu.deploy.operator-validator",
    TOOLKIT: "nvidia.com/gpu.deploy.container-toolkit",
    DEVICE_PLUGIN: "nvidia.com/gpu.deploy.device-plugin",
    MPS: "nvidia.com/gpu.deploy.device-plugin",
    GFD: "nvidia.com/gpu.deploy.gpu-feature-discovery",
    DRA: "nvidia.com/gpu.deploy.dra-driver",
    DRA_CHART: "nvidia.com/dra-kubelet-plugin",  # the chart's values and the driver manager are told of this one
    DRA_VALIDATOR: "nvidia.com/gpu.deploy.dra-validator",
    DCGM_EXPORTER_DRA: "nvidia.com/gpu.deploy.dcgm-exporter-dra",
    DCGM_EXPORTER: "nvidia.com/gpu.deploy.dcgm-exporter",
    DCGM: "nvidia.com/gpu.deploy.dcgm",
    MIG: "nvidia.com/gpu.deploy.mig-manager",
}
