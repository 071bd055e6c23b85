"""CPU and memory: requests of a pod, and allocatable amounts of a node, with the number of pods that it takes."""

from collections.abc import Mapping
from typing import Any

from fleet.observer.mirror.rows.effective_requests import Requests, effective
from fleet.observer.mirror.rows.text import fitted
from fleet.states.pod import ENDED
from kube.quantity import rounded_up
from kube.structs import NodeSeen, PodSeen
from kube.structs.meta import ResourceList
from kube.structs.pod import Container, Resources

SCALES = {"cpu": 1000, "memory": 1, "pods": 1}
# No machine has more, and sums over a hundred thousand such pods fit into a database integer.
MOST = {"cpu": 10**9, "memory": 2**46, "pods": 10**6}
NOTHING: Requests = {}


def requested(seen: PodSeen) -> dict[str, int]:
    """Returns millicores and bytes; zero once the pod is finished.

    During a resize, the requested amount counts, not the granted one.
    """
    amounts = NOTHING if seen.status.phase in ENDED else _requests(seen)
    return {"cpu_m": _capped(amounts, "cpu"), "memory_bytes": _capped(amounts, "memory")}


def other_pod_row(seen: PodSeen) -> dict[str, Any] | None:
    """Returns the reduced row of a pod. None: it has no node, or has finished."""
    if not seen.spec.node_name or seen.status.phase in ENDED:
        return None
    return {"node_name": fitted(seen.spec.node_name, 253), **requested(seen)}


def for_pods(seen: NodeSeen) -> dict[str, int | None]:
    """Returns a node's allocatable amounts. None: not reported."""
    said = _amounts(seen.status.allocatable or {})
    return {
        "cpu_allocatable_m": _capped(said, "cpu") if "cpu" in said else None,
        "memory_allocatable_bytes": _capped(said, "memory") if "memory" in said else None,
        "pods_allocatable": _capped(said, "pods") if "pods" in said else None,
    }


def _requests(seen: PodSeen) -> Requests:
    """Returns the requests. Requests of the whole pod replace the containers' sum; overhead is added.

    PodRequests of k8s.io/component-helpers/resource/helpers.go; kubernetes.io/docs/concepts/scheduling-eviction/
    pod-overhead.
    """
    spec = seen.spec
    total = effective(spec.containers or (), spec.init_containers or (), _requests_of_container)
    if spec.resources is not None:
        total |= _amounts(spec.resources.requests or {})
    for name, amount in _amounts(spec.overhead or {}).items():
        total[name] = total.get(name, 0) + amount
    return total


def _requests_of_container(container: Container) -> Requests:
    """Returns a container's requests. The API server turns a lone limit into a request."""
    resources: Resources | None = container.resources
    if resources is None:
        return NOTHING
    requests = _amounts(resources.requests or {})
    return _amounts(resources.limits) | requests if resources.limits else requests


def _amounts(quantities: ResourceList) -> Requests:
    found: Requests = {}
    for name, scale in SCALES.items():
        if name in quantities and (amount := rounded_up(quantities[name], scale)) is not None:
            found[name] = amount
    return found


def _capped(amounts: Mapping[str, int], name: str) -> int:
    return min(amounts.get(name, 0), MOST[name])
