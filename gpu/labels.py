"""Label and annotation keys of the GPU stack and of Quarterdeck. Pure.

From NVIDIA's k8s-operator-libs (pkg/upgrade/consts.go with the driver name `gpu`), gpu-operator and
gpu-feature-discovery.
"""

import re
from collections.abc import Iterator, Mapping

GPU_PRESENT = "nvidia.com/gpu.present"
GPU_PRODUCT = "nvidia.com/gpu.product"
GPU_MEMORY = "nvidia.com/gpu.memory"  # MiB
GPU_COUNT = "nvidia.com/gpu.count"
DRIVER_VERSION = "nvidia.com/cuda.driver-version.full"
DRIVER_VERSION_PARTS = ("nvidia.com/cuda.driver.major", "nvidia.com/cuda.driver.minor", "nvidia.com/cuda.driver.rev")
DRIVER_OWNER = "nvidia.com/gpu-operator.driver.owner"
UPGRADE_STATE = "nvidia.com/gpu-driver-upgrade-state"
UPGRADE_SKIP = "nvidia.com/gpu-driver-upgrade.skip"
# Annotation: the node was cordoned before its upgrade and stays cordoned.
WAS_CORDONED = "nvidia.com/gpu-driver-upgrade.node-initial-state.unschedulable"
DEPLOY_PREFIX = "nvidia.com/gpu.deploy."
PAUSED = "paused-for-driver-upgrade"
DEPLOY_DRIVER = f"{DEPLOY_PREFIX}driver"
PRE_INSTALLED = "pre-installed"  # value for nodes with their own driver

GPU_CLIQUE = "nvidia.com/gpu.clique"  # cluster UUID and clique of an NVLink domain
MIG_RESOURCES = "nvidia.com/mig-"
PLUGIN_CONFIG = "nvidia.com/device-plugin.config"
MIG_CONFIG = "nvidia.com/mig.config"
MIG_CONFIG_STATE = "nvidia.com/mig.config.state"

# ROCm/k8s-device-plugin, cmd/k8s-node-labeller and docs/user-guide/configuration.md
AMD_PRODUCT = ("amd.com/gpu.product-name", "beta.amd.com/gpu.product-name")
AMD_MEMORY = ("amd.com/gpu.vram", "beta.amd.com/gpu.vram")  # 192G
AMD_DRIVER_VERSION = ("amd.com/gpu.driver-version", "beta.amd.com/gpu.driver-version")
AMD_PARTITION = ("amd.com/compute-memory-partition", "amd.com/gpu.compute-memory-partition")  # spx_nps1, cpx_nps4
# ROCm/device-config-manager, pkg/config_manager/configmanager.go
AMD_PROFILE = "dcm.amd.com/gpu-config-profile"
AMD_PROFILE_STATE, AMD_PROFILE_FAILED = f"{AMD_PROFILE}-state", "failure"
# intel-device-plugins-for-kubernetes, deployments/nfd/overlays/node-feature-rules
INTEL_PRODUCT = "gpu.intel.com/product"
INTEL_COUNT = "gpu.intel.com/device.count"
INTEL_COUNT_OF_DEVICE = ("gpu.intel.com/device-id.", ".count")  # around class and device ID, per kind of device
INTEL_PRESENT = "intel.feature.node.kubernetes.io/gpu"
AMD_PRESENT = ("feature.node.kubernetes.io/amd-gpu", "feature.node.kubernetes.io/amd-vgpu")  # the second: in a VM

CAPACITY_TYPES = (
    "karpenter.sh/capacity-type",  # spot, on-demand, reserved
    "eks.amazonaws.com/capacityType",  # SPOT, ON_DEMAND, CAPACITY_BLOCK
    "cloud.google.com/gke-provisioning",  # spot, preemptible, standard
    "kubernetes.azure.com/scalesetpriority",  # spot, regular
)
GKE_SPOT = ("cloud.google.com/gke-spot", "cloud.google.com/gke-preemptible")  # "true"

# Labels of clouds about a machine's GPUs, for nodes without a vendor's labeller. GKE: kubernetes/autoscaler,
# cluster-autoscaler, cloudprovider/gce; Karpenter: karpenter.sh/docs/reference/instance-types,
# learn.microsoft.com/azure/aks (node auto-provisioning); EKS: cloudprovider/aws of the autoscaler,
# docs.aws.amazon.com/eks (Auto Mode, create-node-pool).
GKE_ACCELERATOR = "cloud.google.com/gke-accelerator"  # nvidia-l4
GKE_PARTITION = "cloud.google.com/gke-gpu-partition-size"  # 1g.5gb
GKE_SHARING = "cloud.google.com/gke-gpu-sharing-strategy"  # time-sharing, mps
GKE_CLIENTS = "cloud.google.com/gke-max-shared-clients-per-gpu"
CLOUD_VENDOR = (  # nvidia, amd
    "karpenter.k8s.aws/instance-gpu-manufacturer",
    "eks.amazonaws.com/instance-gpu-manufacturer",
    "karpenter.azure.com/sku-gpu-manufacturer",
    "doks.digitalocean.com/gpu-brand",  # DigitalOcean's; docs.digitalocean.com, GPU worker nodes
)
COREWEAVE = ("gpu.nvidia.com/model", "gpu.nvidia.com/class")
ACK = "aliyun.accelerator/nvidia_name"  # Alibaba's; help.aliyun.com, GPU nodes of ACK
CLOUD_PRODUCT = (
    GKE_ACCELERATOR,
    "karpenter.k8s.aws/instance-gpu-name",
    "eks.amazonaws.com/instance-gpu-name",
    "karpenter.azure.com/sku-gpu-name",
    "k8s.amazonaws.com/accelerator",
    ACK,
    "doks.digitalocean.com/gpu-model",
    *COREWEAVE,
)
CLOUD_COUNT = (
    "cloud.google.com/gke-accelerator-count",
    "karpenter.k8s.aws/instance-gpu-count",
    "eks.amazonaws.com/instance-gpu-count",
    "karpenter.azure.com/sku-gpu-count",
    "aliyun.accelerator/nvidia_count",
    "gpu.nvidia.com/count",
)
CLOUD_MEMORY = (  # MiB
    "karpenter.k8s.aws/instance-gpu-memory",
    "eks.amazonaws.com/instance-gpu-memory",
    "aliyun.accelerator/nvidia_mem",
)

REGION = "topology.kubernetes.io/region"
ZONE = "topology.kubernetes.io/zone"
INSTANCE_TYPE = "node.kubernetes.io/instance-type"
HOSTNAME = "kubernetes.io/hostname"
# Labels of the switch next to the nodes, and of the one above: NVIDIA topograph (docs.nvidia.com/topograph, reference
# of node labels; tiers since 1.0) and AWS (layer 3 is next to the instance) write them.
SWITCH_LABELS = (
    "fabric.topograph.run/tier-0",
    "network.topology.nvidia.com/leaf",
    "topology.k8s.aws/network-node-layer-3",
)  # fmt: skip
SPINE_LABELS = (
    "fabric.topograph.run/tier-1",
    "network.topology.nvidia.com/spine",
    "topology.k8s.aws/network-node-layer-2",
)  # fmt: skip
# Labels that stand for the rack where nobody named one. Google Cloud writes the last.
RACK_LABELS = (*SWITCH_LABELS, "cloud.google.com/gce-topology-subblock")

# Other controllers that remove or cordon nodes. Cluster Autoscaler: kubernetes/autoscaler, cluster-autoscaler/FAQ.md
# and utils/taints; Karpenter: karpenter.sh/docs/concepts/disruption and reference/annotations; NVSentinel:
# NVIDIA/NVSentinel, docs/runbooks/driver-upgrades.md.
KARPENTER_POOL = ("karpenter.sh/nodepool", "karpenter.sh/provisioner-name")  # labels: Karpenter created the node
KARPENTER_LEAVE = "karpenter.sh/do-not-disrupt"  # annotation, "true": neither consolidated nor replaced for drift
KARPENTER_GOING = ("karpenter.sh/disrupted", "karpenter.sh/disruption")  # taints
AUTOSCALER_LEAVE = "cluster-autoscaler.kubernetes.io/scale-down-disabled"  # annotation, "true"
AUTOSCALER_GOING = ("ToBeDeletedByClusterAutoscaler", "DeletionCandidateOfClusterAutoscaler")  # taints
SENTINEL_MANAGED = "k8saas.nvidia.com/ManagedByNVSentinel"  # label, "false": NVSentinel leaves the node alone
SENTINEL_STATE = "dgxc.nvidia.com/nvsentinel-state"  # label
SENTINEL_CORDON = "k8saas.nvidia.com/cordon-by"  # label, present during its cordon: docs/configuration
SENTINEL_MARKS = (SENTINEL_MANAGED, SENTINEL_STATE, "nvsentinel.dgxc.nvidia.com/")  # labels begin with these

CANARY = "quarterdeck.io/canary"  # set by people, for a driver object that selects only these nodes
# Annotations. Of nodes: from HAMi's device plugin, and its variant for Volcano; their others change with every
# heartbeat.
GPUS_REGISTERED = ("hami.io/node-nvidia-register", "volcano.sh/node-vgpu-register")
# Of pods: the GPUs chosen by their scheduler. The last is KAI's (Run:ai's), on the pod that holds a shared GPU; it is a
# UUID despite its name (KAI-Scheduler, pkg/resourcereservation/patcher).
GPU_GROUP = "runai-gpu-group"  # label: equal on the holding pod and on pods that share its GPU
GPUS_ASSIGNED = ("hami.io/vgpu-devices-allocated", "volcano.sh/vgpu-ids-new", "run.ai/reserve_for_gpu_index")

HELD_BY = "quarterdeck.io/held-by"  # annotation: "plan-<id>"
HELD_SINCE = "quarterdeck.io/held-since"  # annotation, beside it
CORDONED_BY = "quarterdeck.io/cordoned-by"  # annotation: "plan-<id>"; keeps pods away until the test has passed
IN_POOL = "quarterdeck.io/pool"  # label: a person put the node into a pool with this selector
OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"  # taint: the power of the node is off
OUT_OF_SERVICE_BY = "quarterdeck.io/out-of-service-by"  # annotation: owner of that taint, and the boot ID before
EXCLUDED_BY = "quarterdeck.io/opted-out-by"  # annotation: "plan-<id>", the owner of the exclusions
PUT_BACK = "quarterdeck.io/put-back"  # annotation: the merge patch that restores the previous values
# Labels of our Jobs, which pull an image or test a changed node, and of their pods.
MANAGED_BY, OURS = "app.kubernetes.io/managed-by", "quarterdeck"  # label and value
PROVES_FOR = "quarterdeck.io/proves-for"  # label of test Jobs and their pods: "plan-<id>"
MAINTENANCE_OF = "quarterdeck.io/maintenance-of"  # annotation of a MaintenanceRequest: operation and node UID
PROOF = "quarterdeck.io/proof"  # label: the number of the test Job
ASKED_AT = "quarterdeck.io/asked-at"  # annotation: distinguishes Jobs of another database with the same numbers
KURED_NEEDED = "weave.works/kured-most-recent-reboot-needed"  # kubereboot/kured, --annotate-nodes
KURED_REBOOTS = "weave.works/kured-reboot-in-progress"
MAINTENANCE_DRAIN = "medik8s.io/drain"  # taint of the node-maintenance-operator
# Taints while a node is remediated: medik8s/self-node-remediation, internal/controller, and
# medik8s/fence-agents-remediation, api/v1alpha1.
SELF_REMEDIATION = "remediation.medik8s.io/self-node-remediation"
FENCING = "remediation.medik8s.io/fence-agents-remediation"
REMEDIATED_NODE = "remediation.medik8s.io/node-name"  # annotation of a remediation; without it, its name is the node's
# Annotations. kubernetes-sigs/cluster-api, api/core/v1beta2/common_types.go: of a Machine, and of a Node.
CAPI_REMEDIATE = "cluster.x-k8s.io/remediate-machine"
CAPI_MACHINE = "cluster.x-k8s.io/machine"
MCO_STATE = "machineconfiguration.openshift.io/state"  # annotation: Working, Rebooting, Done, Degraded, Unreconcilable
SLINKY_CORDON = "nodeset.slinky.slurm.net/node-cordon-reason"  # annotation of Slurm's operator
GKE_MAINTENANCE = "cloud.google.com/scheduled-maintenance-time"  # label: seconds since 1970
# Label, "false": NVSentinel neither acts on the node nor watches it (NVSentinel, ADR-040 and #1642).
SENTINEL_WATCHES = "nvsentinel.dgxc.nvidia.com/managed"
KEPT_ANNOTATIONS = (
    *("nvidia.com/", "quarterdeck.io/", "k8saas.nvidia.com/", "nvsentinel.dgxc.nvidia.com/", "quarantine"),
    *GPUS_REGISTERED,
    *(KARPENTER_LEAVE, AUTOSCALER_LEAVE, KURED_NEEDED, KURED_REBOOTS, "nvsentinel.nvidia.com/"),
    *(MCO_STATE, SLINKY_CORDON),
)

MOST_DIGITS = 9

GPU = "nvidia.com/gpu"


def count_in(text: str | None) -> int | None:
    """Returns the number in a label. None: missing, or not a number of up to nine digits."""
    text = text or ""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= MOST_DIGITS else None


# Node Feature Discovery labels PCI devices as pci-<class>_<vendor> or pci-<vendor>: 10de is NVIDIA, 1da3 Habana, 1002
# AMD. NVIDIA's class 03 are GPUs; others are bridges and sound. AMD's class 0300 are mostly in a CPU. Before 0.4 its
# labels had a longer name.
PCI_DEVICE = re.compile(
    r"^(?:feature\.node\.kubernetes\.io/|node\.alpha\.kubernetes-incubator\.io/nfd-)"
    r"pci-(?:(?:03[0-9a-f]{2}_)?(?P<nvidia>10de)|(?:12[0-9a-f]{2}_)?(?P<habana>1da3)"
    r"|(?:12[0-9a-f]{2}|0380)_(?P<amd>1002))(?:_[0-9a-f]+)*\.present$"
)
PCI_PREFIXES = ("feature.node.kubernetes.io/pci-", "node.alpha.kubernetes-incubator.io/nfd-pci-")


def pci_devices(labels: Mapping[str, str]) -> Iterator[re.Match[str]]:
    """Yields the labels of GPUs that Node Feature Discovery saw on the PCI bus; the vendor is the name of a group."""
    for key, value in labels.items():
        if value == "true" and key.startswith(PCI_PREFIXES) and (found := PCI_DEVICE.match(key)):
            yield found
