"""The owner of a node's driver, from the owner of its DaemonSet.

The operator's label (nvidia.com/gpu-operator.driver.owner, 26.7) stays on some nodes after their NVIDIADriver is
deleted and the ClusterPolicy takes over. So the label counts only while that object is active.
"""

from collections.abc import Collection, Iterable, Sequence

from django.db.models import Sum

from fleet.models import DriverObject, Operand, SegmentSums
from gpu.operands import DRIVER

OFF = frozenset({"ignored", "disabled"})  # states of an object that is inactive
OWNED = ("uid", "cluster", "owner_kind", "owner_name")
DriverObjectKey = tuple[int, str, str]  # cluster, kind, name


def key_of(each: DriverObject) -> DriverObjectKey:
    return each.cluster_id, each.kind, each.name


def active_policy(objects: Iterable[DriverObject]) -> DriverObject | None:
    return next((each for each in objects if each.kind == "ClusterPolicy" and each.state not in OFF), None)


def labelled_owner(label: str, objects: Sequence[DriverObject]) -> DriverObject | None:
    """Returns the NVIDIADriver in a node's label. None: it names no active one."""
    policy = active_policy(objects)
    if not label or (policy is not None and not policy.uses_driver_crd):
        return None
    named = (each for each in objects if (each.kind, each.name) == ("NVIDIADriver", label))
    return next((each for each in named if each.state not in OFF), None)


def nodes_by_owner(clusters: Collection[int]) -> dict[DriverObjectKey, int]:
    """Returns how many GPU nodes each driver object controls. Three queries on counters."""
    objects: dict[int, list[DriverObject]] = {cluster: [] for cluster in clusters}
    for each in DriverObject.objects.filter(cluster__in=clusters):
        objects[each.cluster_id].append(each)
    owners = _owners_of_daemon_sets(clusters)
    found: dict[DriverObjectKey, int] = {}
    sums = SegmentSums.objects.filter(cluster__in=clusters).values_list("cluster", "driver_daemon_set", "driver_owner")
    for cluster, daemon_set, label, nodes in sums.annotate(number=Sum("nodes")):
        key = owners.get(daemon_set) or _owner_by_label(label, objects[cluster])
        if key is not None:
            found[key] = found.get(key, 0) + nodes
    return found


def _owners_of_daemon_sets(clusters: Collection[int]) -> dict[str, DriverObjectKey]:
    owned = Operand.objects.filter(cluster__in=clusters, operand=DRIVER).exclude(owner_name="")
    return {uid: (cluster, kind, name) for uid, cluster, kind, name in owned.values_list(*OWNED)}


def _owner_by_label(label: str, objects: Sequence[DriverObject]) -> DriverObjectKey | None:
    """Returns the owner of a node without a driver pod of an owned DaemonSet. None: none."""
    owner = labelled_owner(label, objects) or _policy_that_installs(objects)
    return None if owner is None else key_of(owner)


def _policy_that_installs(objects: Iterable[DriverObject]) -> DriverObject | None:
    policy = active_policy(objects)
    return policy if policy is not None and not policy.uses_driver_crd and not policy.is_driver_off else None
