from typing import Any

from fleet import labels as keys
from fleet.kube.structs import NodeSeen
from fleet.observe.quantity import whole

READINESS = {"True": True, "False": False}  # Unknown: the kubelet stopped reporting, nobody knows


def node_row(seen: NodeSeen) -> dict[str, Any]:
    """The columns that one look at a node gives. What is remembered from earlier looks is `diff.remember`'s."""
    labels = seen.labels
    return {
        "name": seen.name,
        "labels": labels,
        "annotations": {key: value for key, value in seen.annotations.items() if key.startswith(keys.KEPT_ANNOTATIONS)},
        "taints": [
            {"key": taint.key, "value": taint.value or "", "effect": taint.effect} for taint in seen.spec.taints or ()
        ],
        "created_at": seen.metadata.creation_timestamp,
        "is_unschedulable": seen.is_unschedulable,
        "region": labels.get(keys.REGION, "")[:64],
        "zone": labels.get(keys.ZONE, "")[:64],
        "instance_type": labels.get(keys.INSTANCE_TYPE, "")[:64],
        "capacity_type": "",
        "nvlink_domain": labels.get(keys.GPU_CLIQUE, "")[:128],
        **_readiness(seen),
        **_system(seen),
        **_gpus(seen),
        **_driver(seen),
    }


def _readiness(seen: NodeSeen) -> dict[str, Any]:
    ready = seen.ready
    if ready is None:
        return {"is_ready": None, "ready_since": None, "not_ready_because": "The node never said that it is ready."}
    because = "" if ready.status == "True" else ": ".join(part for part in (ready.reason, ready.message) if part)
    return {
        "is_ready": READINESS.get(ready.status),
        "ready_since": ready.last_transition_time,
        "not_ready_because": because[:500],
    }


def _system(seen: NodeSeen) -> dict[str, Any]:
    system = seen.status.node_info
    return {
        "kernel": system.kernel_version[:128],
        "os_image": system.os_image[:128],
        "container_runtime": system.container_runtime_version[:128],
        "kubelet_version": system.kubelet_version[:64],
    }


def _gpus(seen: NodeSeen) -> dict[str, Any]:
    capacity, allocatable = seen.status.capacity or {}, seen.status.allocatable or {}
    counted = whole(capacity.get(keys.GPU))
    labels = seen.labels
    return {
        "is_gpu_node": labels.get(keys.GPU_PRESENT) == "true"
        or any(name.startswith("nvidia.com/") for name in capacity),
        "gpu_product": product_of(labels.get(keys.GPU_PRODUCT, "")),
        "gpu_memory_mib": whole(labels.get(keys.GPU_MEMORY)),
        "gpu_vendor": "",
        "sharing": "",
        "sharing_replicas": None,
        "mig_strategy": "",
        "mig_config": labels.get(keys.MIG_CONFIG, "")[:128],
        "mig_config_state": labels.get(keys.MIG_CONFIG_STATE, "")[:16],
        "layout": "",
        "capacity": {},
        "allocatable": {},
        "expected": {},
        "slices_expected": 0,
        "slices_allocatable": 0,
        "shares_expected": 0,
        "shares_allocatable": 0,
        "gpu_capacity": counted,
        "gpu_allocatable": whole(allocatable.get(keys.GPU)),
    }


def product_of(label: str) -> str:
    """Without what sharing and MIG append: the same board under another strategy is the same product.

    gpu-feature-discovery appends -SHARED, and under the MIG strategy `single` -MIG-<profile>; both may be there.
    """
    return label.removesuffix("-SHARED").split("-MIG-", maxsplit=1)[0][:128]


def _driver(seen: NodeSeen) -> dict[str, Any]:
    labels = seen.labels
    held_by = seen.annotations.get(keys.HELD_BY, "")
    is_held = labels.get(keys.UPGRADE_SKIP) == "true"
    return {
        "driver_version": driver_version_in(labels),
        "upgrade_state": labels.get(keys.UPGRADE_STATE, "")[:64],
        "is_held": is_held,
        "held_by": held_by[:64] if is_held else "",
        "driver_owner": labels.get(keys.DRIVER_OWNER, "")[:253],
    }


def driver_version_in(labels: dict[str, str]) -> str:
    """The loaded version, as gpu-feature-discovery labels it; older ones only label its parts. Blank: not said."""
    if version := labels.get(keys.DRIVER_VERSION):
        return version[:64]
    parts = [labels.get(key, "") for key in keys.DRIVER_VERSION_PARTS]
    return ".".join(part for part in parts if part)[:64] if all(parts[:2]) else ""


def paused_operands(labels: dict[str, str]) -> list[str]:
    """The operands that the driver manager has stopped on this node: `gpu.deploy.<operand>=paused-…`."""
    return sorted(
        key.removeprefix(keys.DEPLOY_PREFIX)
        for key, value in labels.items()
        if key.startswith(keys.DEPLOY_PREFIX) and value.endswith(keys.PAUSED)
    )
