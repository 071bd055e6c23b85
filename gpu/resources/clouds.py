"""What a cloud's own labels say of a node's GPUs: its device plugin offers slices and shares as plain GPUs.

cloud.google.com/kubernetes-engine/docs/how-to/{timesharing-gpus,nvidia-mps-gpus,gpus-multi}: a GPU for four clients is
four nvidia.com/gpu, one that is cut into seven is seven, and both may be true at once.
"""

from collections.abc import Mapping

from gpu import labels as keys
from gpu.resources.names import Vendor

SHARING = {"time-sharing": "time-slicing", "mps": "mps"}
AKS = ("kubernetes.azure.com/accelerator", "accelerator")  # nvidia; the second is of aks-engine and old node pools
VENDORS = {"nvidia": Vendor.NVIDIA, "amd": Vendor.AMD, "habana": Vendor.HABANA}


def cut_and_shared(labels: Mapping[str, str]) -> tuple[str, str, int | None]:
    """Profile, sharing and users of what nvidia.com/gpu counts here. Blank: the cloud says nothing."""
    sharing = SHARING.get(labels.get(keys.GKE_SHARING, ""), "")
    return labels.get(keys.GKE_PARTITION, ""), sharing, keys.count_in(labels.get(keys.GKE_CLIENTS)) if sharing else None


def vendor_in_labels(labels: Mapping[str, str]) -> Vendor | None:
    if product_in_labels(labels).startswith("nvidia-") or any(labels.get(key) for key in (*keys.COREWEAVE, keys.ACK)):
        return Vendor.NVIDIA
    said = (VENDORS.get(labels.get(key, "")) for key in (*keys.CLOUD_VENDOR, *AKS))
    return next((vendor for vendor in said if vendor), None)


def product_in_labels(labels: Mapping[str, str]) -> str:
    """As the cloud calls it: nvidia-l4, t4."""
    return next((labels[key] for key in keys.CLOUD_PRODUCT if labels.get(key)), "")


def boards_in_labels(labels: Mapping[str, str]) -> int | None:
    return next((count for key in keys.CLOUD_COUNT if (count := keys.count_in(labels.get(key)))), None)
