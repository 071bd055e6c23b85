"""The CPU and memory that a pod requests of its node, and that a node has for pods."""

from collections.abc import Mapping
from typing import Any

from fleet.observer.mirror.rows.effective_requests import Requests, effective
from fleet.observer.mirror.rows.text import fitted
from fleet.states.pod import ENDED
from kube.quantity import rounded_up
from kube.structs import NodeSeen, PodSeen
from kube.structs.meta import ResourceList
from kube.structs.pod import Container, Resources

SCALES = {"cpu": 1000, "memory": 1}
# No machine has more; and the sum over a hundred thousand pods that say so still fits into a database's integer.
MOST = {"cpu": 10**9, "memory": 2**46}
NOTHING: Requests = {}


def requested(seen: PodSeen) -> dict[str, int]:
    """In millicores and bytes; nothing of either once it is done.

    While a resize is under way that is what is asked for: what the kubelet has granted so far is not read.
    """
    amounts = NOTHING if seen.status.phase in ENDED else _requests(seen)
    return {"cpu_m": _capped(amounts, "cpu"), "memory_bytes": _capped(amounts, "memory")}


def other_pod_row(seen: PodSeen) -> dict[str, Any] | None:
    """Of a pod that is not kept otherwise. None: it takes nothing of any node."""
    amounts = requested(seen) if seen.spec.node_name else NOTHING
    if not any(amounts.values()):
        return None
    return {"node_name": fitted(seen.spec.node_name, 253), **amounts}


def for_pods(seen: NodeSeen) -> dict[str, int | None]:
    """What a node has allocatable. None: it does not say."""
    said = _amounts(seen.status.allocatable or {})
    return {
        "cpu_allocatable_m": _capped(said, "cpu") if "cpu" in said else None,
        "memory_allocatable_bytes": _capped(said, "memory") if "memory" in said else None,
    }


def _requests(seen: PodSeen) -> Requests:
    """What is requested for the pod as a whole counts instead of its containers' sum; its overhead comes on top.

    PodRequests of k8s.io/component-helpers/resource/helpers.go; kubernetes.io/docs/concepts/scheduling-eviction/
    pod-overhead.
    """
    spec = seen.spec
    total = effective(spec.containers or (), spec.init_containers or (), _of_container)
    if spec.resources is not None:
        total |= _amounts(spec.resources.requests or {})
    for name, amount in _amounts(spec.overhead or {}).items():
        total[name] = total.get(name, 0) + amount
    return total


def _of_container(container: Container) -> Requests:
    """Where only a limit is given, the API server makes it the request."""
    resources: Resources | None = container.resources
    if resources is None:
        return NOTHING
    requests = _amounts(resources.requests or {})
    return _amounts(resources.limits) | requests if resources.limits else requests


def _amounts(quantities: ResourceList) -> Requests:
    """What cannot be read is left out."""
    found: Requests = {}
    for name, scale in SCALES.items():
        if name in quantities and (amount := rounded_up(quantities[name], scale)) is not None:
            found[name] = amount
    return found


def _capped(amounts: Mapping[str, int], name: str) -> int:
    return min(amounts.get(name, 0), MOST[name])
