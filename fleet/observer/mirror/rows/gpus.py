"""GPU columns of a node: layout and amounts."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from fleet.observer.mirror.rows.text import INTEGER_MOST, fitted_count
from gpu import labels as keys
from gpu.label_conflicts import label_conflicts
from gpu.resources import (
    Counts,
    Layout,
    Uses,
    Vendor,
    amd_partition,
    count,
    is_gpu_resource,
    layout_of,
    product_in_labels,
    product_of,
    registered_in,
    unhealthy_in,
    uses_of,
    vendor_in_labels,
    vendor_of,
)
from gpu.resources.physical import columns_of
from kube.quantity import whole_quantity

AMD_LABEL = re.compile(r"^(?:beta\.)?amd\.com/gpu\.(?:device-id|family|product-name)\b")
RESOURCES_AT_MOST = 100
NVIDIA_RESOURCES = "nvidia.com/"
MIB = 2**20


def gpu_columns(
    labels: dict[str, str],
    annotations: dict[str, str],
    capacity: Mapping[str, str | int | float],
    allocatable: Mapping[str, str | int | float],
    taints: Sequence[Mapping[str, str]],
) -> dict[str, Any]:
    there, to_be_had, boards = _amounts(capacity), _amounts(allocatable), registered_in(annotations)
    layout = layout_of(labels, there, boards)
    vendor = _vendor(labels, there, taints)
    return {
        "is_gpu_node": vendor is not None,
        "gpu_product": _product(labels) or next((board.product for board in boards), ""),
        "gpu_memory_mib": _memory_mib(labels),
        "gpu_vendor": vendor.value if vendor else "",
        "plugin_config": labels.get(keys.PLUGIN_CONFIG, "")[:128],
        "mig_config": labels.get(keys.MIG_CONFIG, "")[:128],
        "mig_config_state": labels.get(keys.MIG_CONFIG_STATE, "")[:16],
        "unhealthy_gpus": unhealthy_in(labels, boards),
        "label_conflicts": label_conflicts(labels, offers_nvidia=_offers_nvidia(there)),
        **layout_columns(layout, there),
        **amount_columns(there, to_be_had, {}, layout),
        **physical_columns(uses_of(labels, there, layout, product=_product(labels), registered=len(boards))),
    }


def _offers_nvidia(capacity: Mapping[str, int]) -> bool:
    return any(amount and name.startswith(NVIDIA_RESOURCES) for name, amount in capacity.items())


def layout_columns(layout: Layout, offered: Mapping[str, int]) -> dict[str, Any]:
    """Returns the layout columns. Only `mixed` has resources per slice, even without labels."""
    has_slices = any(amount and name.startswith(keys.MIG_RESOURCES) for name, amount in offered.items())
    return {
        "layout": str(layout),
        "sharing": layout.sharing_of(offered)[:16],
        "sharing_replicas": fitted_count(layout.replicas),
        "mig_strategy": layout.mig_strategy or ("mixed" if has_slices else ""),
    }


def amount_columns(
    capacity: dict[str, int],
    allocatable: dict[str, int],
    expected: dict[str, int],
    layout: Layout,
) -> dict[str, Any]:
    there, to_be_had, should = (count(amounts, layout) for amounts in (capacity, allocatable, expected))
    return {
        "capacity": capacity,
        "allocatable": allocatable,
        "expected": expected,
        "gpu_capacity": fitted_count(there.whole),
        "gpu_allocatable": fitted_count(to_be_had.whole),
        "gpu_expected": fitted_count(should.whole) or None,
        **_limited_counts("expected", should),
        **_limited_counts("allocatable", to_be_had),
    }


def physical_columns(uses: Uses) -> dict[str, Any]:
    return {name: fitted_count(number) for name, number in columns_of(uses).items()}


def _limited_counts(what: str, counts: Counts) -> dict[str, int]:
    return {f"slices_{what}": min(counts.slices, INTEGER_MOST), f"shares_{what}": min(counts.shares, INTEGER_MOST)}


def _amounts(quantities: Mapping[str, str | int | float]) -> dict[str, int]:
    names = [name for name in quantities if is_gpu_resource(name)][:RESOURCES_AT_MOST]
    read = {name.replace("\x00", ""): whole_quantity(quantities[name]) for name in names}
    return {name: min(amount, INTEGER_MOST) for name, amount in sorted(read.items()) if amount is not None}


def _vendor(
    labels: Mapping[str, str], capacity: Mapping[str, int], taints: Sequence[Mapping[str, str]]
) -> Vendor | None:
    """Returns the vendor. None: no sign of GPUs. A resource with the amount 0 counts: its plugin ran here.

    A taint named like a GPU resource reserves a node for GPU users, so it counts before labels exist.
    """
    if capacity:
        most = max(capacity, key=lambda name: (capacity[name], vendor_of(name) is Vendor.NVIDIA))
        return vendor_of(most)
    if labels.get(keys.GPU_PRESENT) == "true" or keys.GPU_PRODUCT in labels:
        return Vendor.NVIDIA
    if any(labels.get(key) == "true" for key in keys.AMD_PRESENT) or any(map(AMD_LABEL.match, labels)):
        return Vendor.AMD
    if labels.get(keys.INTEL_PRESENT) == "true":
        return Vendor.INTEL
    seen = next((match.lastgroup for match in keys.pci_devices(labels)), None)
    named = (vendor_of(taint["key"]) for taint in taints)
    return Vendor(seen) if seen else vendor_in_labels(labels) or next(filter(None, named), None)


def _product(labels: Mapping[str, str]) -> str:
    if said := labels.get(keys.GPU_PRODUCT):
        return product_of(said)
    said = next((labels[key] for key in (*keys.AMD_PRODUCT, keys.INTEL_PRODUCT) if labels.get(key)), "")
    return (said or product_in_labels(labels))[:128]


def _memory_mib(labels: Mapping[str, str]) -> int | None:
    """Returns the memory of a whole board. Under the MIG strategy `single` the label is a slice's, so it is unknown.

    AMD's labeller divides it by the partitions (ROCm/gpu-operator #555).
    """
    if "-MIG-" in labels.get(keys.GPU_PRODUCT, "") or amd_partition(labels):
        return None
    if said := next((labels[key] for key in (keys.GPU_MEMORY, *keys.CLOUD_MEMORY) if labels.get(key)), ""):
        return _mib(said)
    gibs = keys.count_in(next((labels[key] for key in keys.AMD_MEMORY if labels.get(key)), "").removesuffix("G"))
    return None if gibs is None else fitted_count(gibs * 1024)


def _mib(said: str) -> int | None:
    """Returns MiB. Feature discovery of OpenShift 4.10 wrote bytes; no board has a tebibyte."""
    said = said.removesuffix("MiB")
    amount = int(said) if said.isdecimal() and len(said) < 16 else 0
    mib = amount // MIB if amount >= MIB else amount
    return fitted_count(mib or None)
