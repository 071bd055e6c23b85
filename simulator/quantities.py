"""Resource quantities as numbers: CPU in millicores, memory in bytes, everything else counted."""

from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

Obj = dict[str, Any]
SUFFIXES = {
    "Ki": 2**10,
    "Mi": 2**20,
    "Gi": 2**30,
    "Ti": 2**40,
    "k": 10**3,
    "M": 10**6,
    "G": 10**9,
    "T": 10**12,
    "m": 10**-3,
}
Amounts = Counter[str]


@lru_cache(maxsize=4096)
def amount(resource: str, quantity: str) -> int:
    if resource == "cpu":
        return int(quantity[:-1]) if quantity.endswith("m") else round(float(quantity) * 1000)
    for suffix, factor in SUFFIXES.items():
        if quantity.endswith(suffix):
            return round(float(quantity.removesuffix(suffix)) * factor)
    return round(float(quantity))


def amounts(quantities: dict[str, str] | None) -> Amounts:
    return Counter({key: amount(key, str(value)) for key, value in (quantities or {}).items()})


def requests(pod: Obj) -> Amounts:
    """What the scheduler books for a pod: the sum of its containers, or its largest init container."""
    total: Amounts = Counter({"pods": 1})
    for container in _containers(pod):
        total.update(container_requests(container))
    for container in _containers(pod, "initContainers"):
        for resource, wanted in container_requests(container).items():
            total[resource] = max(total[resource], wanted)
    return total


def container_requests(container: Obj) -> Amounts:
    resources = container.get("resources") or {}
    # Extended resources are given as limits; the API server copies them to requests.
    return amounts({**(resources.get("limits") or {}), **(resources.get("requests") or {})})


def is_gpu(resource: str) -> bool:
    return resource.startswith(("nvidia.com/gpu", "nvidia.com/mig-"))


def wants_gpu(pod: Obj) -> bool:
    """Containers only, not init containers, as the operator's own pod filter counts."""
    return any(is_gpu(key) for container in _containers(pod) for key in container_requests(container))


def _containers(pod: Obj, which: str = "containers") -> Iterable[Obj]:
    return (pod.get("spec") or {}).get(which) or ()
