"""Operands by their `app` label (gpu-operator assets/*), with the node label that admits each."""

TOOLKIT = "nvidia-container-toolkit-daemonset"
DEVICE_PLUGIN = "nvidia-device-plugin-daemonset"
GFD = "gpu-feature-discovery"
DCGM = "nvidia-dcgm"
DCGM_EXPORTER = "nvidia-dcgm-exporter"
MIG = "nvidia-mig-manager"
VALIDATOR = "nvidia-operator-validator"

GATES = {
    VALIDATOR: "nvidia.com/gpu.deploy.operator-validator",
    TOOLKIT: "nvidia.com/gpu.deploy.container-toolkit",
    DEVICE_PLUGIN: "nvidia.com/gpu.deploy.device-plugin",
    GFD: "nvidia.com/gpu.deploy.gpu-feature-discovery",
    DCGM_EXPORTER: "nvidia.com/gpu.deploy.dcgm-exporter",
    DCGM: "nvidia.com/gpu.deploy.dcgm",
    MIG: "nvidia.com/gpu.deploy.mig-manager",
}
