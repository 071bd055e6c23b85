from typing import Any

from fleet.observer.mirror.rows.container_settings import container_settings
from fleet.observer.mirror.rows.cpu_memory import requested
from fleet.observer.mirror.rows.environment import environment_columns
from fleet.observer.mirror.rows.gpu_requests import (
    claims_of,
    device_columns,
    extended_resources,
    satisfied_by_claim,
)
from fleet.observer.mirror.rows.image import image_of
from fleet.observer.mirror.rows.placement import exclusions_of, placement_of
from fleet.observer.mirror.rows.pod_status import crashed_at, restarts_of, status_of
from fleet.observer.mirror.rows.stuck_containers import stuck, waiting_reason
from fleet.observer.mirror.rows.text import INTEGER_MOST, fitted, fitted_instant, fitted_labels
from fleet.observer.mirror.watch_scope import WatchScope
from gpu.labels import MANAGED_BY, OURS, PROVES_FOR
from gpu.operands import operand_of
from gpu.resources import Layout, asks_for_part, count, gpu_groups
from kube.structs import PodSeen
from kube.structs.pod import ContainerStatus

BY_NAME = Layout()  # without a node, only the resource's name decides


def is_kept(seen: PodSeen, scope: WatchScope) -> bool:
    """Tells whether a pod concerns GPUs: it requests some, runs on a GPU node, or belongs to the stack."""
    return (
        seen.spec.node_name in scope.gpu_nodes
        or seen.namespace in scope.operator_namespaces
        or bool(operand_of(seen.labels))
        or bool(extended_resources(seen))
        or bool(seen.spec.resource_claims)
        or bool(gpu_groups(seen.labels))
        or asks_for_part(seen.annotations)
    )


def pod_row(seen: PodSeen) -> dict[str, Any]:
    ready, owner = seen.ready, seen.metadata.owner
    is_ready = ready is not None and ready.status == "True"
    is_calm = is_ready and _are_ready(seen.status.container_statuses)
    trouble = None if is_calm else stuck(seen)
    return {
        "namespace": fitted(seen.namespace, 63),
        "name": fitted(seen.name, 253),
        "node_name": fitted(seen.spec.node_name, 253),
        "created_at": fitted_instant(seen.metadata.creation_timestamp),
        "started_at": fitted_instant(seen.status.start_time),
        "deleted_at": fitted_instant(seen.metadata.deletion_timestamp),
        "phase": fitted(seen.status.phase, 16),
        "status": status_of(seen),
        "is_ready": is_ready,
        "ready_since": fitted_instant(ready.last_transition_time) if ready else None,
        "restarts": restarts_of(seen),
        "crashed_at": crashed_at(seen),
        "waiting_reason": "" if is_calm else waiting_reason(seen, trouble),
        "stuck_container": trouble.container if trouble else "",
        "last_words": trouble.last_words if trouble else "",
        "more_words": trouble.more_words if trouble else "",
        **_wants(seen),
        **requested(seen),
        "owner_kind": fitted(owner.kind, 63) if owner else "",
        "owner_name": fitted(owner.name, 253) if owner else "",
        "owner_uid": fitted(owner.uid, 64) if owner else "",
        "runtime_class": fitted(seen.spec.runtime_class_name, 253),
        "priority_class": fitted(seen.spec.priority_class_name, 253),
        "has_empty_dir": any(volume.empty_dir is not None for volume in seen.spec.volumes or ()),
        "revision_hash": fitted(seen.labels.get("controller-revision-hash"), 63),
        "image": image_of(seen.spec),
        **environment_columns(seen),
        "placement": placement_of(seen),
        "exclusions": exclusions_of(seen),
    }


def _are_ready(statuses: list[ContainerStatus] | None) -> bool:
    return bool(statuses) and all(status.ready for status in statuses or ())


def _wants(seen: PodSeen) -> dict[str, Any]:
    """Returns its GPU requests and devices. `gpus` counts by the resource's name; on a shared node it counts shares."""
    claims, operand, claimed = claims_of(seen), operand_of(seen.labels, seen.name), satisfied_by_claim(seen)
    resources = {name: amount for name, amount in extended_resources(seen).items() if name not in claimed}
    is_ours = seen.labels.get(MANAGED_BY) == OURS and PROVES_FOR in seen.labels  # a pod of a test Job
    is_sharing = bool(gpu_groups(seen.labels)) or asks_for_part(seen.annotations)
    is_tenant = not operand and not is_ours and (bool(resources or claims) or is_sharing)
    return {
        "resources": resources,
        "gpus": min(count(resources, BY_NAME).whole or 0, INTEGER_MOST) if resources else 0,
        "claims": claims,
        **device_columns(seen),
        "labels": fitted_labels(seen.labels) if is_tenant else {},
        "operand": operand,
        "is_tenant": is_tenant,
        "container_settings": container_settings(seen) if is_tenant else {},
    }
