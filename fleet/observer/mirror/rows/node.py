from collections.abc import Iterator, Mapping
from typing import Any

from fleet.observer.mirror.rows.cpu_memory import for_pods
from fleet.observer.mirror.rows.gpus import gpu_columns
from fleet.observer.mirror.rows.text import (
    ANNOTATION_AT_MOST,
    both_ends,
    fitted,
    fitted_instant,
    fitted_labels,
    fitted_words,
)
from gpu import labels as keys
from gpu.conditions import LIFECYCLE, PRESSURES, ConditionVerdict, is_a_fault_report, read_condition
from gpu.health_labels import HEALTH, health_of
from kube.structs import Condition, NodeSeen

READINESS = {"True": True, "False": False}  # Unknown: the kubelet stopped reporting
TAINTS_AT_MOST = 100
CONDITIONS_AT_MOST = 40
LIFECYCLE_MESSAGE_AT_MOST = 500
MESSAGE_AT_MOST = 4_096  # NVSentinel writes at most 1,024
SPOT = frozenset({"spot", "preemptible"})
ON_DEMAND = frozenset({"on-demand", "on_demand", "standard", "regular"})


def node_row(seen: NodeSeen) -> dict[str, Any]:
    """Returns the columns of one observation; `diff.remember` adds remembered values."""
    labels, annotations, taints = fitted_labels(seen.labels), kept_annotations(seen), _taints(seen)
    return {
        "name": fitted(seen.name, 253),
        "labels": labels,
        "annotations": annotations,
        "taints": taints,
        "created_at": fitted_instant(seen.metadata.creation_timestamp),
        "is_unschedulable": seen.is_unschedulable,
        "cordoned_by": fitted(seen.cordoned_by, 128),
        "conditions": _conditions(seen),
        "lifecycle": _lifecycle(seen) or None,
        "is_paused": bool(paused_operands(labels)),
        "region": labels.get(keys.REGION, "")[:64],
        "zone": labels.get(keys.ZONE, "")[:64],
        "instance_type": labels.get(keys.INSTANCE_TYPE, "")[:64],
        "capacity_type": capacity_type(labels),
        "nvlink_domain": labels.get(keys.GPU_CLIQUE, "")[:128],
        **_readiness(seen),
        **_system(seen),
        **gpu_columns(labels, annotations, seen.status.capacity or {}, seen.status.allocatable or {}, taints),
        **for_pods(seen),
        **_driver(labels, seen.annotations),
    }


def kept_annotations(seen: NodeSeen) -> dict[str, str]:
    """Returns the annotations that the row of a node keeps, each cut to its length there."""
    kept = {key: value for key, value in seen.annotations.items() if key.startswith(keys.KEPT_ANNOTATIONS)}
    return fitted_labels(kept, most=ANNOTATION_AT_MOST)


def _taints(seen: NodeSeen) -> list[dict[str, str]]:
    return [
        {"key": fitted(taint.key, 317), "value": fitted(taint.value, 253), "effect": fitted(taint.effect, 63)}
        for taint in (seen.spec.taints or ())[:TAINTS_AT_MOST]
    ]


def capacity_type(labels: dict[str, str]) -> str:
    """Returns the capacity type: spot, on-demand, or the cloud's own word. Blank: not reported.

    karpenter.sh/docs/concepts/scheduling; EKS managed node groups; GKE Spot VMs; AKS spot node pools.
    """
    if any(labels.get(key) == "true" for key in keys.GKE_SPOT):
        return "spot"
    said = next((labels[key].lower() for key in keys.CAPACITY_TYPES if labels.get(key)), "")
    if said in SPOT:
        return "spot"
    return "on-demand" if said in ON_DEMAND else said.replace("_", "-")[:16]


def _readiness(seen: NodeSeen) -> dict[str, Any]:
    ready = seen.ready
    if ready is None:
        return {
            "is_ready": None,
            "ready_since": None,
            "not_ready_reason": "The node has never reported that it is ready.",
        }
    return {
        "is_ready": READINESS.get(ready.status),
        "ready_since": fitted_instant(ready.last_transition_time),
        "not_ready_reason": "" if ready.status == "True" else fitted_words(500, ready.reason, ready.message),
    }


def _conditions(seen: NodeSeen) -> list[dict[str, str | None]]:
    """Returns the reports of detectors, faults first. Harmless ones omit message and time, so most nodes have equal
    values."""
    reports = (*(seen.status.conditions or ()), *_labelled_health(seen.labels))
    found = [_condition(each) for each in reports if is_a_fault_report(each.type)]
    kept = [each for each in found if each["verdict"] == ConditionVerdict.WRONG or each["type"] not in PRESSURES]
    order = list(ConditionVerdict)
    return sorted(kept, key=lambda each: order.index(ConditionVerdict(each["verdict"])))[:CONDITIONS_AT_MOST]


def _labelled_health(labels: Mapping[str, str]) -> Iterator[Condition]:
    if health := health_of(labels):
        status, message = health
        yield Condition(HEALTH, status, message=message)


def _lifecycle(seen: NodeSeen) -> list[dict[str, str | None]]:
    """Returns Kubernetes' life cycle conditions that are True, by type."""
    found = [each for each in seen.status.conditions or () if each.type in LIFECYCLE and each.status == "True"]
    return [
        {
            "type": each.type,
            "reason": fitted(each.reason, 256),
            "message": both_ends(each.message, LIFECYCLE_MESSAGE_AT_MOST) or "",
            "since": at.isoformat() if (at := fitted_instant(each.last_transition_time)) else None,
        }
        for each in sorted(found, key=lambda each: each.type)[: len(LIFECYCLE)]
    ]


def _condition(seen: Condition) -> dict[str, Any]:
    reading = read_condition(seen.type, seen.status, seen.reason or "", seen.message or "")
    row = {"type": fitted(seen.type, 317), "status": fitted(seen.status, 16), "verdict": reading.verdict.value}
    if reading.verdict is ConditionVerdict.FINE:
        return row
    at = fitted_instant(seen.last_transition_time)
    return row | {
        "reporter": reading.reporter,
        "severity": reading.severity.value if reading.verdict is ConditionVerdict.WRONG else "",
        "message": ": ".join(
            part for part in (fitted(seen.reason, 256), both_ends(seen.message, MESSAGE_AT_MOST)) if part
        ),
        "recommended_action": reading.action,
        "xids": list(reading.xids),
        "since": at.isoformat() if at else None,
    }


def _system(seen: NodeSeen) -> dict[str, Any]:
    system = seen.status.node_info
    return {
        "kernel": fitted(system.kernel_version, 128),
        "os_image": fitted(system.os_image, 128),
        "container_runtime": fitted(system.container_runtime_version, 128),
        "kubelet_version": fitted(system.kubelet_version, 64),
        "boot_id": fitted(system.boot_id, 64),
    }


def _driver(labels: dict[str, str], annotations: dict[str, str]) -> dict[str, Any]:
    is_held = labels.get(keys.UPGRADE_SKIP) == "true"
    return {
        "driver_version": driver_version_in(labels),
        "upgrade_state": labels.get(keys.UPGRADE_STATE, "")[:64],
        "is_held": is_held,
        "held_by": fitted(annotations.get(keys.HELD_BY), 64) if is_held else "",
        "driver_owner": labels.get(keys.DRIVER_OWNER, "")[:253],
    }


def driver_version_in(labels: dict[str, str]) -> str:
    """Returns the loaded version from gpu-feature-discovery's label, or from its parts in older releases. Blank:
    missing."""
    said = (keys.DRIVER_VERSION, *keys.AMD_DRIVER_VERSION)
    if version := next((labels[key] for key in said if labels.get(key)), ""):
        return version[:64]
    parts = [labels.get(key, "") for key in keys.DRIVER_VERSION_PARTS]
    return ".".join(part for part in parts if part)[:64] if all(parts[:2]) else ""


def paused_operands(labels: dict[str, str]) -> list[str]:
    """Returns the operands that the driver manager stopped here: `gpu.deploy.<operand>=paused-…`."""
    return sorted(
        key.removeprefix(keys.DEPLOY_PREFIX)
        for key, value in labels.items()
        if value.endswith(keys.PAUSED) and key.startswith(keys.DEPLOY_PREFIX)
    )
