"""ResourceQuota: what a pod counts for, and the refusal once a namespace has used up what it may have.

k8s.io/apiserver, pkg/quota/v1, and the admission plug-in ResourceQuota. Quotas with scopes are not counted.
"""

from collections import Counter
from collections.abc import Iterable
from typing import Any

from simulator.etcd import Etcd
from simulator.kinds import POD, RESOURCE_QUOTA
from simulator.quantities import amount, amounts, container_requests
from simulator.refusals import Refused, forbidden

Obj = dict[str, Any]
COUNTED = ("pods", "count/pods")
PLAIN = ("cpu", "memory", "ephemeral-storage")  # a quota may name them without `requests.`
BYTES = ("memory", "ephemeral-storage")
UNITS = (("Ti", 2**40), ("Gi", 2**30), ("Mi", 2**20), ("Ki", 2**10))


def admit(store: Etcd, pod: Obj, namespace: str) -> None:
    """:raises Refused: 403 in the words of the quota that is used up."""
    quotas = [record.obj for record in store.page(RESOURCE_QUOTA, namespace).records]
    if not quotas:
        return
    pods = [record.obj for record in store.page(POD, namespace).records]
    for quota in quotas:
        _admit(quota, pod, used(quota, pods))


def used(quota: Obj, pods: Iterable[Obj]) -> Counter[str]:
    """Of what the quota limits; pods that have ended count for nothing."""
    hard = hard_of(quota)
    total: Counter[str] = Counter(dict.fromkeys(hard, 0))
    for pod in pods:
        if (pod.get("status") or {}).get("phase") not in ("Succeeded", "Failed"):
            total.update(counted(pod, hard))
    return total


def counted(pod: Obj, keys: Iterable[str]) -> Counter[str]:
    requests: Counter[str] = Counter()
    limits: Counter[str] = Counter()
    for container in pod["spec"].get("containers") or ():
        requests.update(container_requests(container))
        limits.update(amounts((container.get("resources") or {}).get("limits")))
    found: Counter[str] = Counter()
    for key in keys:
        kind, _, resource = key.rpartition("requests.") if "requests." in key else key.rpartition("limits.")
        if key in COUNTED:
            found[key] = 1
        elif key.startswith("limits."):
            found[key] = limits[resource]
        elif key.startswith("requests.") or key in PLAIN:
            found[key] = requests[resource or kind]
    return found


def hard_of(quota: Obj) -> dict[str, int]:
    hard = (quota.get("spec") or {}).get("hard") or {}
    return {key: amount(_resource(key), str(value)) for key, value in hard.items()}


def written(key: str, count: int) -> str:
    """A quantity as it is printed."""
    resource = _resource(key)
    if resource == "cpu":
        return str(count // 1000) if count % 1000 == 0 else f"{count}m"
    if resource in BYTES:
        unit, factor = next(((unit, factor) for unit, factor in UNITS if count and count % factor == 0), ("", 1))
        return f"{count // factor}{unit}"
    return str(count)


def _resource(key: str) -> str:
    return key.removeprefix("requests.").removeprefix("limits.")


def _admit(quota: Obj, pod: Obj, taken: Counter[str]) -> None:
    hard = hard_of(quota)
    asked = counted(pod, hard)
    over = sorted(key for key, count in asked.items() if count and taken[key] + count > hard[key])
    if over:
        raise _exceeded(quota, pod, over, asked, taken, hard)


def _exceeded(
    quota: Obj, pod: Obj, over: list[str], asked: Counter[str], taken: Counter[str], hard: dict[str, int]
) -> Refused:
    def told(counts: dict[str, int]) -> str:
        return ",".join(f"{key}={written(key, counts[key])}" for key in over)

    words = f"exceeded quota: {quota['metadata']['name']}, requested: {told(asked)}, used: {told(taken)}, "
    metadata = pod["metadata"]
    return forbidden(POD, metadata.get("name") or metadata.get("generateName", ""), words + f"limited: {told(hard)}")
