"""Cloud labels about a node's GPUs: cloud device plugins offer slices and shares as plain GPUs.

Types of machines that always have GPUs: docs.aws.amazon.com/ec2, accelerated computing; learn.microsoft.com/azure,
sizes for GPU accelerated virtual machines; cloud.google.com/compute/docs/gpus; docs.oracle.com, compute shapes. Other
accelerators (inf, trn, dl2q, TPUs, Azure's NP) are none.

cloud.google.com/kubernetes-engine/docs/how-to/{timesharing-gpus,nvidia-mps-gpus,gpus-multi}: a GPU for four clients
counts as four nvidia.com/gpu, one cut into seven counts as seven, and both can combine.
"""

import re
from collections.abc import Mapping

from gpu import labels as keys
from gpu.resources.names import Vendor

SHARING = {"time-sharing": "time-slicing", "mps": "mps"}
AKS = ("kubernetes.azure.com/accelerator", "accelerator")  # nvidia; the second from aks-engine and old node pools
MACHINES = (
    (Vendor.AMD, r"g4ad\.|Standard_N[DV]\w*(?:MI300X|V710)|Standard_NV\d+as_v4|BM\.GPU\.MI"),
    (Vendor.HABANA, r"dl1\."),
    (Vendor.NVIDIA, r"(?:p[2-6]|g[2-7]|gr6)[\w-]*\.|Standard_N[CDV]|(?:a[2-4]x?|g[24])-|(?:VM|BM)\.GPU"),
)
VENDORS = {"nvidia": Vendor.NVIDIA, "amd": Vendor.AMD, "habana": Vendor.HABANA}


def cut_and_shared(labels: Mapping[str, str]) -> tuple[str, str, int | None]:
    """Returns profile, sharing and users per unit of nvidia.com/gpu. Blank: no such label."""
    sharing = SHARING.get(labels.get(keys.GKE_SHARING, ""), "")
    return labels.get(keys.GKE_PARTITION, ""), sharing, keys.count_in(labels.get(keys.GKE_CLIENTS)) if sharing else None


def vendor_in_labels(labels: Mapping[str, str]) -> Vendor | None:
    if product_in_labels(labels).startswith("nvidia-") or any(labels.get(key) for key in (*keys.COREWEAVE, keys.ACK)):
        return Vendor.NVIDIA
    vendors = (VENDORS.get(labels.get(key, "")) for key in (*keys.CLOUD_VENDOR, *AKS))
    return next(filter(None, vendors), None) or _vendor_of_machine(labels.get(keys.INSTANCE_TYPE, ""))


def _vendor_of_machine(machine: str) -> Vendor | None:
    return next((vendor for vendor, pattern in MACHINES if re.match(pattern, machine)), None)


def product_in_labels(labels: Mapping[str, str]) -> str:
    """Returns the cloud's product name: nvidia-l4, t4."""
    return next((labels[key] for key in keys.CLOUD_PRODUCT if labels.get(key)), "")


def boards_in_labels(labels: Mapping[str, str]) -> int | None:
    return next((count for key in keys.CLOUD_COUNT if (count := keys.count_in(labels.get(key)))), None)
