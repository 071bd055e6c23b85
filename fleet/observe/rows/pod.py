from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from fleet import labels as keys
from fleet.kube.structs import PodSeen
from fleet.kube.structs.pod import Container, ContainerStatus
from fleet.observe.quantity import whole
from fleet.operands import operand_of

DONE = frozenset({"Succeeded", "Failed"})  # holds no resource any more


@dataclass
class Places:
    """Which nodes and namespaces make a pod worth keeping."""

    gpu_nodes: set[str] = field(default_factory=set)
    operator_namespaces: set[str] = field(default_factory=set)


def is_kept(seen: PodSeen, places: Places) -> bool:
    """Whether a pod concerns GPUs: it asks for some, runs beside some, or belongs to what runs them."""
    return (
        seen.spec.node_name in places.gpu_nodes
        or seen.namespace in places.operator_namespaces
        or bool(operand_of(seen.labels))
        or bool(extended_resources(seen))
    )


def pod_row(seen: PodSeen) -> dict[str, Any]:
    ready, owner = seen.ready, seen.metadata.owner
    resources = extended_resources(seen)
    containers = seen.spec.containers or [Container()]
    return {
        "namespace": seen.namespace,
        "name": seen.name,
        "node_name": seen.spec.node_name or "",
        "created_at": seen.metadata.creation_timestamp,
        "started_at": seen.status.start_time,
        "deleted_at": seen.metadata.deletion_timestamp,
        "phase": seen.status.phase[:16],
        "is_ready": ready is not None and ready.status == "True",
        "ready_since": ready.last_transition_time if ready else None,
        "restarts": sum(status.restart_count for status in seen.status.container_statuses or ()),
        "waiting_because": waiting_because(seen)[:500],
        "stuck_container": "",
        "last_words": "",
        "resources": resources,
        "gpus": resources.get(keys.GPU, 0),
        "owner_kind": owner.kind[:63] if owner else "",
        "owner_name": owner.name[:253] if owner else "",
        "owner_uid": owner.uid[:64] if owner else "",
        "claims": [],
        "devices": {},
        "runtime_class": "",
        "priority_class": "",
        "labels": {},
        "has_empty_dir": any(volume.empty_dir is not None for volume in seen.spec.volumes or ()),
        "operand": operand_of(seen.labels),
        "revision_hash": seen.labels.get("controller-revision-hash", "")[:63],
        "image": (containers[0].image or "")[:500],
    }


def extended_resources(seen: PodSeen) -> dict[str, int]:
    """The GPU resources a pod occupies, as the scheduler counts them.

    That is the sum over the containers and the sidecars, or what one init container needs where that is more
    (kubernetes.io/docs/concepts/workloads/pods/init-containers, "Resource sharing within containers").
    """
    inits = seen.spec.init_containers or []
    sidecars = [container for container in inits if container.restart_policy == "Always"]
    running = _sum((*(seen.spec.containers or ()), *sidecars))
    for container in inits:
        for name, amount in _wants(container).items():
            running[name] = max(running.get(name, 0), amount)
    return dict(sorted(running.items()))


def _sum(containers: Iterable[Container]) -> dict[str, int]:
    total: dict[str, int] = {}
    for container in containers:
        for name, amount in _wants(container).items():
            total[name] = total.get(name, 0) + amount
    return total


def _wants(container: Container) -> dict[str, int]:
    """Extended resources cannot be overcommitted: where only a limit is given, it is the request."""
    resources = container.resources
    if resources is None:
        return {}
    asked = (resources.limits or {}) | (resources.requests or {})
    return {name: whole(amount) or 0 for name, amount in asked.items() if name.startswith(keys.GPU_RESOURCES)}


def waiting_because(seen: PodSeen) -> str:
    """Why it does not run, in the cluster's own words. Blank: it runs, or is done."""
    if seen.status.phase == "Succeeded":
        return ""
    if seen.status.phase == "Failed":
        return _words(seen.status.reason, seen.status.message)
    for status in (*(seen.status.init_container_statuses or ()), *(seen.status.container_statuses or ())):
        if because := _stuck(status):
            return because
    scheduled = seen.scheduled
    if scheduled is not None and scheduled.status == "False":
        return _words(scheduled.reason, scheduled.message)
    return ""


def _stuck(status: ContainerStatus) -> str:
    waiting = status.state.waiting if status.state else None
    if waiting is not None and waiting.reason not in ("PodInitializing", "ContainerCreating"):
        return _words(waiting.reason, waiting.message)
    return "" if status.ready else _died(status)


def _died(status: ContainerStatus) -> str:
    """A container that crashes runs again for a moment between two back-offs: how it ended last is still the reason."""
    for state in (status.state, status.last_state):
        ended = state.terminated if state else None
        if ended is not None and ended.exit_code != 0:
            return _words(ended.reason, f"exit code {ended.exit_code}, {status.restart_count} restarts")
    return ""


def _words(*parts: str | None) -> str:
    return ": ".join(part for part in parts if part)
