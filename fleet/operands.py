"""The DaemonSets of the GPU stack, by the `app` label that their pods carry. Pure.

Names from NVIDIA's gpu-operator, assets/*; the driver's pods are told by their component label, which both the
ClusterPolicy and the NVIDIADriver way of running it set.
"""

from collections.abc import Mapping
from types import MappingProxyType

DRIVER = "driver"
VALIDATOR = "operator-validator"
DEVICE_PLUGIN = "device-plugin"

TITLES: Mapping[str, str] = MappingProxyType(
    {
        DRIVER: "Driver",
        "container-toolkit": "Container toolkit",
        DEVICE_PLUGIN: "Device plugin",
        "mps-control-daemon": "MPS control daemon",
        "gpu-feature-discovery": "GPU feature discovery",
        "dcgm": "DCGM",
        "dcgm-exporter": "DCGM exporter",
        "mig-manager": "MIG manager",
        VALIDATOR: "Validator",
        "node-status-exporter": "Node status exporter",
        "vgpu-manager": "vGPU manager",
        "vgpu-device-manager": "vGPU device manager",
        "vfio-manager": "VFIO manager",
        "sandbox-device-plugin": "Sandbox device plugin",
        "sandbox-validator": "Sandbox validator",
        "kata-sandbox-device-plugin": "Kata sandbox device plugin",
        "cc-manager": "Confidential computing manager",
        "dra-driver": "DRA driver",
        "dcgm-dra": "DCGM (DRA)",
        "dcgm-exporter-dra": "DCGM exporter (DRA)",
    },
)

BY_APP: Mapping[str, str] = MappingProxyType(
    {
        "nvidia-driver-daemonset": DRIVER,
        "nvidia-container-toolkit-daemonset": "container-toolkit",
        "nvidia-device-plugin-daemonset": DEVICE_PLUGIN,
        "nvidia-device-plugin-mps-control-daemon": "mps-control-daemon",
        "gpu-feature-discovery": "gpu-feature-discovery",
        "nvidia-dcgm": "dcgm",
        "nvidia-dcgm-exporter": "dcgm-exporter",
        "nvidia-mig-manager": "mig-manager",
        "nvidia-operator-validator": VALIDATOR,
        "nvidia-node-status-exporter": "node-status-exporter",
        "nvidia-vgpu-manager-daemonset": "vgpu-manager",
        "nvidia-vgpu-device-manager": "vgpu-device-manager",
        "nvidia-vfio-manager": "vfio-manager",
        "nvidia-sandbox-device-plugin-daemonset": "sandbox-device-plugin",
        "nvidia-sandbox-validator": "sandbox-validator",
        "nvidia-kata-sandbox-device-plugin-daemonset": "kata-sandbox-device-plugin",
        "nvidia-cc-manager": "cc-manager",
        "nvidia-dra-driver-kubelet-plugin": "dra-driver",
        "nvidia-dcgm-dra": "dcgm-dra",
        "nvidia-dcgm-exporter-dra": "dcgm-exporter-dra",
    },
)


def operand_of(labels: Mapping[str, str]) -> str:
    """Which operand a pod with these labels belongs to. Blank: none."""
    if labels.get("app.kubernetes.io/component") == "nvidia-driver":
        return DRIVER
    return BY_APP.get(labels.get("app", ""), "")


def title_of(operand: str) -> str:
    return TITLES.get(operand, operand)
