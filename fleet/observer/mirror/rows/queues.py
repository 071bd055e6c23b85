"""Rows of queues, and of workloads that wait in them. A finished workload has no row.

Conditions and reasons of Kueue: kubernetes-sigs/kueue@ff69552e79, apis/kueue/v1beta2/workload_types.go. Phases and
conditions of PodGroups: volcano-sh/apis@062ae57e, pkg/apis/scheduling/v1beta1/types.go, and NVIDIA/KAI-Scheduler@
10965f0d, pkg/apis/scheduling/v2alpha2/podgroup_types.go.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from fleet.observer.mirror.rows.text import INTEGER_MOST, fitted, fitted_count, fitted_instant
from kube.quantity import whole_quantity
from kube.structs.meta import Condition, ResourceList, Seen, find
from kube.structs.queues import Flavor, FlavorResource, KueueWorkloadSeen, PodGroupSeen, QueueSeen

MOST = 64  # quotas of a queue, resources of a workload
MESSAGE_AT_MOST = 2000
SCHEDULED_PHASES = ("Running",)  # of a PodGroup: all members that it needs have a node
FINISHED_PHASES = ("Completed", "Finished")


def kueue_workload_row(seen: KueueWorkloadSeen) -> dict[str, Any] | None:
    conditions = seen.status.conditions
    if _is_true(find(conditions, "Finished")):
        return None
    admission = seen.status.admission
    is_admitted = _is_true(find(conditions, "Admitted"))
    why = None if is_admitted else _why_waiting(conditions)
    checks = [check for check in seen.status.admission_checks or () if check.state != "Ready"]
    said = [f"{check.name}: {check.state}. {check.message or ''}".strip() for check in checks]
    message = (why.message or "") if why else ""
    counts: Counter[str] = Counter()
    for each in (seen.status.resource_requests or ())[:MOST]:
        counts += Counter(_amounts(each.resources))
    return {
        **_common(seen, "kueue"),
        "queue": fitted(seen.spec.queue_name, 253),
        "admitted_to": fitted(admission.cluster_queue, 253) if admission else "",
        "priority": max(-INTEGER_MOST, min(seen.spec.priority or 0, INTEGER_MOST)),
        "is_active": seen.spec.active is not False,
        "is_waiting": not is_admitted,
        "members": fitted_count(sum(pods.count or 0 for pods in seen.spec.pod_sets or ())),
        "requests": {name: str(amount) for name, amount in counts.items()},
        "reason": fitted(why.reason, 256) if why else "",
        "message": fitted(" ".join([message, *said]).strip() if why else "", MESSAGE_AT_MOST),
        "reason_at": fitted_instant(why.last_transition_time) if why else None,
    }


def pod_group_row(seen: PodGroupSeen, system: str) -> dict[str, Any] | None:
    phase = seen.status.phase or ""
    if phase in FINISHED_PHASES:
        return None
    reason, message, at = "", "", None
    for each in seen.status.scheduling_conditions or ():  # KAI
        said = [f"{one.reason}: {one.message}" for one in each.reasons or ()]
        reason, message, at = each.reason or each.type, " ".join(said) or each.message or "", each.last_transition_time
    unscheduled = find(seen.status.conditions, "Unschedulable")
    if unscheduled is not None and unscheduled.status == "True":  # Volcano
        reason, message = unscheduled.reason or "", unscheduled.message or ""
        at = unscheduled.last_transition_time
    return {
        **_common(seen, system),
        "queue": fitted(seen.spec.queue, 253),
        "admitted_to": "",
        "priority": 0,
        "is_active": True,
        "is_waiting": phase not in SCHEDULED_PHASES,
        "members": fitted_count(seen.spec.min_member or 0),
        "requests": {name: str(amount) for name, amount in _amounts(seen.spec.min_resources).items()},
        "reason": fitted(reason or phase, 256),
        "message": fitted(message, MESSAGE_AT_MOST),
        "reason_at": fitted_instant(at),
    }


def queue_row(seen: QueueSeen, kind: str) -> dict[str, Any]:
    active = find(seen.status.conditions, "Active")
    is_stopped = seen.spec.stop_policy not in ("", "None", None)
    trouble = f"{active.reason}: {active.message}" if active is not None and active.status == "False" else ""
    return {
        "kind": kind,
        "namespace": fitted(seen.metadata.namespace, 63),
        "name": fitted(seen.name, 253),
        "cluster_queue": fitted(seen.spec.cluster_queue, 253),
        "cohort": fitted(seen.spec.cohort_name or seen.spec.cohort, 253),
        "strategy": fitted(seen.spec.queueing_strategy, 32),
        "trouble": fitted(trouble or (f"Stop policy {seen.spec.stop_policy}" if is_stopped else ""), 1000),
        "pending": fitted_count(seen.status.pending_workloads or 0),
        "quotas": list(_quotas(seen))[:MOST],
    }


def _quotas(seen: QueueSeen) -> Iterator[dict[str, Any]]:
    reserved = {(flavor.name, each.name): each for flavor, each in _resources(seen.status.flavors_reservation)}
    for group in seen.spec.resource_groups or ():
        for flavor, each in _resources(group.flavors):
            used = reserved.get((flavor.name, each.name), FlavorResource())
            yield {
                "flavor": fitted(flavor.name, 253),
                "resource": fitted(each.name, 317),
                "nominal": _written(each.nominal_quota),
                "borrowing": None if each.borrowing_limit is None else _written(each.borrowing_limit),
                "reserved": _written(used.total),
                "borrowed": _written(used.borrowed),
            }


def _resources(flavors: list[Flavor] | None) -> Iterator[tuple[Flavor, FlavorResource]]:
    return ((flavor, each) for flavor in flavors or () for each in flavor.resources or ())


def _common(seen: Seen, system: str) -> dict[str, Any]:
    owner = seen.metadata.owner or next(iter(seen.metadata.owner_references or ()), None)
    return {
        "namespace": fitted(seen.metadata.namespace, 63),
        "name": fitted(seen.name, 253),
        "system": system,
        "created_at": fitted_instant(seen.metadata.creation_timestamp),
        "owner_kind": fitted(owner.kind, 63) if owner else "",
        "owner_name": fitted(owner.name, 253) if owner else "",
        "owner_uid": fitted(owner.uid, 64) if owner else "",
    }


def _why_waiting(conditions: list[Condition] | None) -> Condition | None:
    """Returns the condition that says why it is not admitted: quota first, then admission checks."""
    quota = find(conditions, "QuotaReserved")
    return quota if quota is None or quota.status != "True" else find(conditions, "Admitted")


def _is_true(condition: Condition | None) -> bool:
    return condition is not None and condition.status == "True"


def _amounts(amounts: ResourceList | None) -> dict[str, int]:
    read = {fitted(name, 317): whole_quantity(amount) for name, amount in list((amounts or {}).items())[:MOST]}
    return {name: amount for name, amount in read.items() if amount}


def _written(quantity: str | float | None) -> str:
    return fitted(str(quantity), 64) if quantity is not None else "0"
