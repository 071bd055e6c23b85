"""The DaemonSets of the GPU stack, recognized by the labels of their pods. Pure.

Names from NVIDIA's gpu-operator, assets/*; driver pods have a component label, set for ClusterPolicy and
NVIDIADriver alike. Without the operator: k8s-device-plugin, deployments/*; node-feature-discovery,
deployment/helm/*/templates/worker.yaml; openshift/cluster-nfd-operator, assets/worker; dcgm-exporter, deployment;
device plugin, driver installer and exporter of Google's clusters
(GoogleCloudPlatform/container-engine-accelerators). kubernetes-sigs/dra-driver-nvidia-gpu, deployments/helm: its
chart used the label nvidia-dra-driver-gpu-component before 0.4; pods of a ComputeDomain carry its label
(templates/compute-domain-daemon.tmpl.yaml). ROCm/k8s-gpu-dra-driver, helm-charts-k8s. Other vendors:
ROCm/k8s-device-plugin, helm/amd-gpu and k8s-ds-amdgpu-*.yaml; ROCm/gpu-operator,
internal/{plugin,nodelabeller,metricsexporter} (all DaemonSets of a DeviceConfig have the label daemonset-name);
intel-device-plugins-for-kubernetes, deployments/gpu_plugin; Habana's habanalabs-device-plugin.yaml; aws-neuron-sdk,
src/k8/k8s-neuron-device-plugin.yml. Exporters of others: AMD's own chart calls its DaemonSet
RELEASE-amdgpu-metrics-exporter and gives its pods the label app of that value (ROCm/device-metrics-exporter, its
tests and docs of the ServiceMonitor), its operator NAME-metrics-exporter; both listen at 5000 unless told otherwise
(values.yaml, servicePort). Gaudi's is metric-exporter-ds, with a prefix by some charts and by Intel's operator, and
listens at 41611 (docs.habana.ai, Orchestration, Prometheus Metric Exporter). DCGM's listens at 9400:
DCGM_EXPORTER_LISTEN.

Drivers of others: kernel-module-management makes a pod for each node that loads a module, and one that builds its
image (internal/pod/workerpodmanager.go, internal/buildsign/resource/common.go); AMD's operator installs amdgpu by it.
NVIDIA's network operator marks its driver's pods (manifests/state-ofed-driver). AMD's config manager partitions GPUs
(ROCm/gpu-operator, internal/configmanager).
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
MIG_DEFAULT_CONFIG = "default-mig-parted-config"  # the ConfigMap that the operator creates if none is named
DRA_DRIVER = "dra-driver"
COMPUTE_DOMAIN = "compute-domain-daemon"
DRIVER_INSTALLER = "driver-installer"
AMD_PLUGIN = "amd-device-plugin"
AMD_LABELLER = "amd-node-labeller"
AMD_EXPORTER = "amd-metrics-exporter"
AMD_DRA = "amd-dra-driver"
AMD_CONFIG = "amd-config-manager"
KMM = "kernel-module"
NETWORK_DRIVER = "network-driver"
INTEL_PLUGIN = "intel-gpu-plugin"
INTEL_DRA = "intel-dra-driver"
GAUDI_PLUGIN = "gaudi-device-plugin"
GAUDI_EXPORTER = "gaudi-metric-exporter"
NEURON_PLUGIN = "neuron-device-plugin"
OF_OTHERS = frozenset(
    {
        AMD_PLUGIN, AMD_LABELLER, AMD_EXPORTER, AMD_DRA, AMD_CONFIG, KMM, NETWORK_DRIVER, INTEL_PLUGIN, INTEL_DRA,
        GAUDI_PLUGIN, GAUDI_EXPORTER, NEURON_PLUGIN,
    }
)  # fmt: skip
TESTS = frozenset({"cuda-test", "plugin-test"})  # pods of the validator; each runs once
DCGM_EXPORTERS = ("dcgm-exporter", "dcgm-exporter-dra")
# GPU exporters with their default ports.
EXPORTER_PORTS: Mapping[str, int] = MappingProxyType(
    {**dict.fromkeys(DCGM_EXPORTERS, 9400), AMD_EXPORTER: 5000, GAUDI_EXPORTER: 41611}
)
EXPORTERS = tuple(EXPORTER_PORTS)

TITLES: Mapping[str, str] = MappingProxyType(
    {
        DRIVER: "Driver",
        DRIVER_INSTALLER: "Driver installer",
        NETWORK_DRIVER: "Network driver (MOFED)",
        KMM: "Kernel module (KMM)",
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
        COMPUTE_DOMAIN: "ComputeDomain daemon",
        "dcgm-exporter-dra": "DCGM exporter (DRA)",
        AMD_PLUGIN: "AMD device plugin",
        AMD_LABELLER: "AMD node labeller",
        AMD_EXPORTER: "AMD metrics exporter",
        AMD_DRA: "AMD DRA driver",
        AMD_CONFIG: "AMD config manager",
        INTEL_PLUGIN: "Intel GPU plugin",
        INTEL_DRA: "Intel DRA driver",
        GAUDI_PLUGIN: "Gaudi device plugin",
        GAUDI_EXPORTER: "Gaudi metric exporter",
        NEURON_PLUGIN: "Neuron device plugin",
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
        "intel-gpu-plugin": INTEL_PLUGIN,
    },
)


# Labels of operands outside the operator: key and value.
BY_LABEL: Mapping[tuple[str, str], str] = MappingProxyType(
    {
        ("app.kubernetes.io/component", "nvidia-driver"): DRIVER,
        ("app.kubernetes.io/name", "nvidia-device-plugin"): DEVICE_PLUGIN,
        ("name", "nvidia-device-plugin-ds"): DEVICE_PLUGIN,
        ("name", "nvidia-cc-manager"): "cc-manager",  # of its pods; its DaemonSet has the label app
        ("k8s-app", "nvidia-gpu-device-plugin"): DEVICE_PLUGIN,
        ("k8s-app", "nvidia-driver-installer"): DRIVER_INSTALLER,
        ("app.kubernetes.io/name", "gpu-feature-discovery"): GFD,
        ("app.kubernetes.io/name", "gke-managed-dcgm-exporter"): "dcgm-exporter",
        ("app.kubernetes.io/name", "dcgm-exporter"): "dcgm-exporter",  # its own chart and manifest
        ("nvidia-dra-driver-gpu-component", "kubelet-plugin"): DRA_DRIVER,  # from its own chart, without the operator
        ("dra-driver-nvidia-gpu-component", "kubelet-plugin"): DRA_DRIVER,
        ("app.kubernetes.io/name", "k8s-gpu-dra-driver"): AMD_DRA,  # its own chart
        ("nvidia.com/ofed-driver", ""): NETWORK_DRIVER,
        ("name", "amdgpu-dp-ds"): AMD_PLUGIN,
        ("name", "amd-gpu-dp-ds"): AMD_PLUGIN,
        ("name", "amdgpu-lr-ds"): AMD_LABELLER,
        ("name", "amd-gpu-lr-ds"): AMD_LABELLER,
        ("name", "habanalabs-device-plugin-ds"): GAUDI_PLUGIN,
        ("name", "neuron-device-plugin-ds"): NEURON_PLUGIN,
    },
)

# The device plugin's own chart gives all its DaemonSets the same labels; only their names differ.
BY_NAME = (("gpu-feature-discovery", GFD), ("mps-control-daemon", "mps-control-daemon"))
# A required label and a part of the name, for AMD's operator and for operands without telling labels.
BY_LABEL_AND_NAME = (
    ("daemonset-name", "-device-plugin", AMD_PLUGIN),
    ("daemonset-name", "-node-labeller", AMD_LABELLER),
    ("daemonset-name", "-metrics-exporter", AMD_EXPORTER),
    ("app", "-amdgpu-metrics-exporter", AMD_EXPORTER),
    ("daemonset-name", "-dra-driver", AMD_DRA),
    ("daemonset-name", "-config-manager", AMD_CONFIG),
    ("resource.nvidia.com/computeDomain", "", COMPUTE_DOMAIN),
    ("", "intel-gpu-resource-driver-kubelet-plugin", INTEL_DRA),
    ("", "habana-ai-device-plugin", GAUDI_PLUGIN),
    ("app.kubernetes.io/name", "metric-exporter-ds", GAUDI_EXPORTER),
)

# Of these only some pods run on every node: their name, the label that tells the part, and the parts.
BY_PART: Mapping[str, tuple[str, Mapping[str, str]]] = MappingProxyType(
    {
        NFD: ("role", {"worker": NFD}),
        "kmm": ("app.kubernetes.io/component", dict.fromkeys(("worker", "BuildImage", "SignImage"), KMM)),
    }
)

# The operands that an operand's init containers wait for, in order: driver-validation, toolkit-validation, …
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
        **dict.fromkeys((AMD_PLUGIN, AMD_LABELLER, AMD_EXPORTER, AMD_DRA, AMD_CONFIG), (KMM,)),
    },
)


def operand_of(labels: Mapping[str, str], name: str = "") -> str:
    """Returns the operand of a pod with these labels. Blank: none.

    `name` is the name of the pod or its DaemonSet; the device plugin's chart gives both DaemonSets the same labels.
    """
    if parts := BY_PART.get(labels.get("app.kubernetes.io/name", "")):
        label, operands = parts
        return operands.get(labels.get(label, ""), "")
    is_labelled = not BY_LABEL.keys().isdisjoint(labels.items())
    found = next(operand for pair, operand in BY_LABEL.items() if pair in labels.items()) if is_labelled else ""
    if found == DEVICE_PLUGIN:
        found = next((operand for part, operand in BY_NAME if part in name), found)
    return found or BY_APP.get(labels.get("app", ""), "") or _operand_by_name(labels, name)


def _operand_by_name(labels: Mapping[str, str], name: str) -> str:
    fitting = (operand for key, part, operand in BY_LABEL_AND_NAME if part in name and (not key or key in labels))
    return next(fitting, "")


def title_of(operand: str) -> str:
    return TITLES.get(operand, operand)
