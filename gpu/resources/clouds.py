"""Cloud labels about a node's GPUs: cloud device plugins offer slices and shares as plain GPUs.

cloud.google.com/kubernetes-engine/docs/how-to/{timesharing-gpus,nvidia-mps-gpus,gpus-multi}: a GPU for four clients
counts as four nvidia.com/gpu, one cut into seven counts as seven, and both can combine.
"""

from collections.abc import Mapping

from gpu import labels as keys
from gpu.resources.names import Vendor

SHARING = {"time-sharing": "time-slicing", "mps": "mps"}
AKS = ("kubernetes.azure.com/accelerator", "accelerator")  # nvidia; the second from aks-engine and old node pools
VENDORS = {"nvidia": Vendor.NVIDIA, "amd": Vendor.AMD, "habana": Vendor.HABANA}


def cut_and_shared(labels: Mapping[str, str]) -> tuple[str, str, int | None]:
    """Returns profile, sharing and users per unit of nvidia.com/gpu. Blank: no such label."""
    sharing = SHARING.get(labels.get(keys.GKE_SHARING, ""), "")
    return labels.get(keys.GKE_PARTITION, ""), sharing, keys.count_in(labels.get(keys.GKE_CLIENTS)) if sharing else None


def vendor_in_labels(labels: Mapping[str, str]) -> Vendor | None:
    if product_in_labels(labels).startswith("nvidia-") or any(labels.get(key) for key in (*keys.COREWEAVE, keys.ACK)):
        return Vendor.NVIDIA
    vendors = (VENDORS.get(labels.get(key, "")) for key in (*keys.CLOUD_VENDOR, *AKS))
    return next((vendor for vendor in vendors if vendor), None)


def product_in_labels(labels: Mapping[str, str]) -> str:
    """Returns the cloud's product name: nvidia-l4, t4."""
    return next((labels[key] for key in keys.CLOUD_PRODUCT if labels.get(key)), "")


def boards_in_labels(labels: Mapping[str, str]) -> int | None:
    return next((count for key in keys.CLOUD_COUNT if (count := keys.count_in(labels.get(key)))), None)
