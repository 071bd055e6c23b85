"""Whose driver a node runs: the owner of its DaemonSet decides.

The operator's label for it (nvidia.com/gpu-operator.driver.owner, 26.7) stays on some nodes when their NVIDIADriver is
deleted and the ClusterPolicy takes drivers over again, so that it is believed only while that object acts.
"""

from collections.abc import Collection, Iterable, Sequence

from django.db.models import Count, Exists, OuterRef

from fleet.models import DriverObject, Node, Operand, Pod
from gpu.operands import DRIVER

OFF = frozenset({"ignored", "disabled"})  # states of an object that does not count
OWNED = ("uid", "cluster", "owner_kind", "owner_name")
Key = tuple[int, str, str]  # cluster, kind, name


def key_of(each: DriverObject) -> Key:
    return each.cluster_id, each.kind, each.name


def active_policy(objects: Iterable[DriverObject]) -> DriverObject | None:
    return next((each for each in objects if each.kind == "ClusterPolicy" and each.state not in OFF), None)


def labelled_owner(label: str, objects: Sequence[DriverObject]) -> DriverObject | None:
    """The NVIDIADriver that a node's label names. None: it names none that acts."""
    policy = active_policy(objects)
    if not label or (policy is not None and not policy.uses_driver_crd):
        return None
    named = (each for each in objects if (each.kind, each.name) == ("NVIDIADriver", label))
    return next((each for each in named if each.state not in OFF), None)


def nodes_by_owner(clusters: Collection[int]) -> dict[Key, int]:
    """How many GPU nodes each driver object moves. Four queries."""
    objects: dict[int, list[DriverObject]] = {cluster: [] for cluster in clusters}
    for each in DriverObject.objects.filter(cluster__in=clusters):
        objects[each.cluster_id].append(each)
    found: dict[Key, int] = {}
    for key, number in [*_by_daemon_set(clusters), *_by_label(clusters, objects)]:
        found[key] = found.get(key, 0) + number
    return found


def _driver_pods(clusters: Collection[int]):
    return Pod.objects.filter(cluster__in=clusters, operand=DRIVER, deleted_at=None).exclude(owner_uid="").order_by()


def _by_daemon_set(clusters: Collection[int]) -> Iterable[tuple[Key, int]]:
    drivers = Operand.objects.filter(cluster__in=clusters, operand=DRIVER).exclude(owner_name="").order_by()
    owners = {uid: (cluster, kind, name) for uid, cluster, kind, name in drivers.values_list(*OWNED)}
    pods = _driver_pods(clusters).filter(node__is_gpu_node=True).values_list("owner_uid")
    for uid, number in pods.annotate(number=Count("node", distinct=True)):
        if uid in owners:
            yield owners[uid], number


def _by_label(clusters: Collection[int], objects: dict[int, list[DriverObject]]) -> Iterable[tuple[Key, int]]:
    """Of the nodes without a driver pod of an owned DaemonSet."""
    owned = Operand.objects.filter(cluster__in=clusters, operand=DRIVER).exclude(owner_name="").values("uid")
    pods = _driver_pods(clusters).filter(node=OuterRef("pk"), owner_uid__in=owned)
    nodes = Node.objects.with_gpus().filter(~Exists(pods), cluster__in=clusters).order_by()
    for cluster, label, number in nodes.values_list("cluster", "driver_owner").annotate(number=Count("pk")):
        owner = labelled_owner(label, objects[cluster]) or _policy_that_installs(objects[cluster])
        if owner is not None:
            yield key_of(owner), number


def _policy_that_installs(objects: Iterable[DriverObject]) -> DriverObject | None:
    policy = active_policy(objects)
    return policy if policy is not None and not policy.uses_driver_crd and not policy.is_driver_off else None
