"""The DaemonSets of the GPU stack, by the labels that their pods carry. Pure.

Names from NVIDIA's gpu-operator, assets/*; the driver's pods are told by their component label, which both the
ClusterPolicy and the NVIDIADriver way of running it set. Without the operator: k8s-device-plugin, deployments/*;
node-feature-discovery, deployment/helm/*/templates/worker.yaml; openshift/cluster-nfd-operator, assets/worker;
dcgm-exporter, deployment; device plugin, driver installer and exporter of Google's clusters
(GoogleCloudPlatform/container-engine-accelerators).
"""

from collections.abc import Mapping
from types import MappingProxyType

DRIVER = "driver"
TOOLKIT = "container-toolkit"
VALIDATOR = "operator-validator"
DEVICE_PLUGIN = "device-plugin"
GFD = "gpu-feature-discovery"
NFD = "node-feature-discovery"
MIG_MANAGER = "mig-manager"
DRA_DRIVER = "dra-driver"
DRIVER_INSTALLER = "driver-installer"
TESTS = frozenset({"cuda-test", "plugin-test"})  # the validator's own pods: each runs once and is done
EXPORTERS = ("dcgm-exporter", "dcgm-exporter-dra")

TITLES: Mapping[str, str] = MappingProxyType(
    {
        DRIVER: "Driver",
        DRIVER_INSTALLER: "Driver installer",
        TOOLKIT: "Container toolkit",
        DEVICE_PLUGIN: "Device plugin",
        "mps-control-daemon": "MPS control daemon",
        NFD: "Node feature discovery",
        GFD: "GPU feature discovery",
        "dcgm": "DCGM",
        "dcgm-exporter": "DCGM exporter",
        MIG_MANAGER: "MIG manager",
        VALIDATOR: "Validator",
        "cuda-test": "CUDA test",
        "plugin-test": "Device plugin test",
        "node-status-exporter": "Node status exporter",
        "vgpu-manager": "vGPU manager",
        "vgpu-device-manager": "vGPU device manager",
        "vfio-manager": "VFIO manager",
        "sandbox-device-plugin": "Sandbox device plugin",
        "sandbox-validator": "Sandbox validator",
        "kata-sandbox-device-plugin": "Kata sandbox device plugin",
        "cc-manager": "Confidential computing manager",
        DRA_DRIVER: "DRA driver",
        "dcgm-dra": "DCGM (DRA)",
        "dcgm-exporter-dra": "DCGM exporter (DRA)",
    },
)

BY_APP: Mapping[str, str] = MappingProxyType(
    {
        "nvidia-driver-daemonset": DRIVER,
        "nvidia-container-toolkit-daemonset": TOOLKIT,
        "nvidia-device-plugin-daemonset": DEVICE_PLUGIN,
        "nvidia-device-plugin-mps-control-daemon": "mps-control-daemon",
        "gpu-feature-discovery": GFD,
        "nvidia-dcgm": "dcgm",
        "nvidia-dcgm-exporter": "dcgm-exporter",
        "nvidia-mig-manager": MIG_MANAGER,
        "nvidia-operator-validator": VALIDATOR,
        "nvidia-cuda-validator": "cuda-test",
        "nvidia-device-plugin-validator": "plugin-test",
        "nvidia-node-status-exporter": "node-status-exporter",
        "nvidia-vgpu-manager-daemonset": "vgpu-manager",
        "nvidia-vgpu-device-manager": "vgpu-device-manager",
        "nvidia-vfio-manager": "vfio-manager",
        "nvidia-sandbox-device-plugin-daemonset": "sandbox-device-plugin",
        "nvidia-sandbox-validator": "sandbox-validator",
        "nvidia-kata-sandbox-device-plugin-daemonset": "kata-sandbox-device-plugin",
        "nvidia-cc-manager": "cc-manager",
        "nvidia-dra-driver-kubelet-plugin": DRA_DRIVER,
        "nvidia-dcgm-dra": "dcgm-dra",
        "nvidia-dcgm-exporter-dra": "dcgm-exporter-dra",
        "nfd-worker": NFD,
    },
)


# Outside the operator: what else tells an operand. A key and its value.
BY_LABEL: Mapping[tuple[str, str], str] = MappingProxyType(
    {
        ("app.kubernetes.io/component", "nvidia-driver"): DRIVER,
        ("app.kubernetes.io/name", "nvidia-device-plugin"): DEVICE_PLUGIN,
        ("name", "nvidia-device-plugin-ds"): DEVICE_PLUGIN,
        ("k8s-app", "nvidia-gpu-device-plugin"): DEVICE_PLUGIN,
        ("k8s-app", "nvidia-driver-installer"): DRIVER_INSTALLER,
        ("app.kubernetes.io/name", "gpu-feature-discovery"): GFD,
        ("app.kubernetes.io/name", "gke-managed-dcgm-exporter"): "dcgm-exporter",
        ("app.kubernetes.io/name", "dcgm-exporter"): "dcgm-exporter",  # its own chart and manifest
        ("nvidia-dra-driver-gpu-component", "kubelet-plugin"): DRA_DRIVER,  # its own chart, without the operator
    },
)

# The device plugin's own chart gives all its DaemonSets the same labels: only their names differ.
BY_NAME = (("gpu-feature-discovery", GFD), ("mps-control-daemon", "mps-control-daemon"))

# What an operand's own init containers wait for, the first one first: driver-validation, toolkit-validation, …
WAITS_FOR: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        TOOLKIT: (DRIVER,),
        DEVICE_PLUGIN: (DRIVER, TOOLKIT),
        "mps-control-daemon": (DRIVER, TOOLKIT),
        GFD: (DRIVER, TOOLKIT),
        "dcgm": (DRIVER, TOOLKIT),
        "dcgm-exporter": (DRIVER, TOOLKIT),
        MIG_MANAGER: (DRIVER, TOOLKIT),
        VALIDATOR: (DRIVER, TOOLKIT, DEVICE_PLUGIN),
        DRA_DRIVER: (DRIVER,),
        "dcgm-dra": (DRIVER,),
        "dcgm-exporter-dra": (DRIVER,),
    },
)


def operand_of(labels: Mapping[str, str], name: str = "") -> str:
    """Which operand a pod with these labels belongs to. Blank: none.

    `name`: the pod's or its DaemonSet's; the chart of the device plugin gives both of its DaemonSets the same labels.
    """
    if labels.get("app.kubernetes.io/name") == NFD:
        return NFD if labels.get("role") == "worker" else ""
    found = next((operand for (key, value), operand in BY_LABEL.items() if labels.get(key) == value), "")
    if found == DEVICE_PLUGIN:
        found = next((operand for part, operand in BY_NAME if part in name), found)
    return found or BY_APP.get(labels.get("app", ""), "")


def title_of(operand: str) -> str:
    return TITLES.get(operand, operand)
