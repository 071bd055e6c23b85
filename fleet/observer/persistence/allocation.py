"""Pod data in a node's row: requested GPUs, unhealthy devices, and the driver's DaemonSet."""

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import chain

from django.db.models import Count, Q, QuerySet

from fleet.allocation.counters import count_written_nodes
from fleet.models import Node, Pod
from fleet.observer.mirror.rows.text import INTEGER_MOST
from fleet.observer.persistence import dra
from fleet.observer.persistence.upsert import Written
from gpu.operands import DRIVER
from gpu.resources import Layout, count_taken

COLUMNS = ("gpu_allocated", "slices_allocated", "shares_allocated")


@dataclass(frozen=True)
class Taken:
    """The pod data of one node. Hashable, so that nodes with equal values are written together."""

    requested: tuple[tuple[str, int], ...] = ()
    counts: tuple[int, int, int] = (0, 0, 0)  # whole GPUs, slices, shares
    sick: tuple[tuple[str, str], ...] = ()  # devices that the kubelet calls so, and the pod that has each
    driver_daemon_set: str = ""  # UID of the DaemonSet of its driver pod

    @classmethod
    def of(cls, requested: Mapping[str, int], layout: Layout, sick: Mapping[str, str], daemon_set: str) -> "Taken":
        counts = count_taken(requested, layout)
        # A pod may name any node, so the sum is limited to its column.
        whole, slices, shares = (min(each, INTEGER_MOST) for each in (counts.whole or 0, counts.slices, counts.shares))
        taken = whole, slices, shares
        return cls(tuple(sorted(requested.items())), taken, tuple(sorted(sick.items())), daemon_set)


DifferingTaken = Mapping[Taken, Collection[int]]  # values by node keys


def touched_by(written: Written) -> set[str]:
    """Returns the nodes whose values may have changed."""
    rows = [*written.alive, *written.gone, *(old for old, _ in written.changed)]
    speaking = [row for row in rows if row["resources"] or row["claims"] or row["operand"] == DRIVER]
    return {row["node_name"] for row in speaking if row["node_name"]}


def recut(written: Written) -> set[str]:
    """Returns the nodes whose resources changed their meaning."""
    return {new["name"] for old, new in written.changed if old["layout"] != new["layout"]}


def count(cluster_id: int, names: Collection[str]) -> None:
    """Recounts these nodes in the transaction that wrote the pods."""
    if names:
        write(cluster_id, differing(cluster_id, names))


def adopt(cluster_id: int, nodes: Mapping[str, int]) -> set[str]:
    """Assigns new nodes to pods that arrived earlier, or that outlived a node of the same name.

    Returns the names of nodes that got pods.
    """
    orphans: dict[str, list[int]] = defaultdict(list)
    found = Pod.objects.filter(cluster_id=cluster_id, node__isnull=True, node_name__in=list(nodes))
    for pod_id, name in found.values_list("id", "node_name"):
        orphans[name].append(pod_id)
    for name, ids in orphans.items():
        Pod.objects.filter(pk__in=ids).update(node_id=nodes[name])
    count(cluster_id, list(orphans))
    return set(orphans)


def differing(cluster_id: int, names: Collection[str] | None) -> DifferingTaken:
    """Returns the nodes with outdated values, by the right value. Four queries, two more with DRA.

    `names` limits the nodes; None: all.
    """
    pods = Pod.objects.filter(cluster_id=cluster_id).not_done().exclude(node_name="").order_by()
    nodes = Node.objects.filter(cluster_id=cluster_id).order_by()
    if names is not None:
        pods, nodes = pods.filter(node_name__in=names), nodes.filter(name__in=names)
    requested, (sick, daemon_sets) = _requested(cluster_id, pods), _unhealthy_devices_and_daemon_sets(pods)
    wrong: dict[Taken, list[int]] = defaultdict(list)
    columns = ("id", "name", "layout", "requested", "devices_unhealthy", "driver_daemon_set", *COLUMNS)
    for node_id, name, layout, was, ailing, daemon_set, *counts in nodes.values_list(*columns):
        said = sick.get(name, {}), daemon_sets.get(name, "")
        taken = Taken.of(requested.get(name, {}), Layout.read(layout), *said)
        if taken != Taken(tuple(sorted(was.items())), tuple(counts), tuple(sorted(ailing.items())), daemon_set):
            wrong[taken].append(node_id)
    return wrong


def _requested(cluster_id: int, pods: QuerySet[Pod]) -> dict[str, dict[str, int]]:
    """Returns requested amounts by node and resource. The database counts equal pods."""
    sums: dict[str, dict[str, int]] = defaultdict(dict)
    asking = pods.exclude(resources={}).values("node_name", "resources").annotate(number=Count("id"))
    for node, resources, number in asking.values_list("node_name", "resources", "number"):
        for name, amount in resources.items():
            sums[node][name] = sums[node].get(name, 0) + amount * number
    claiming = pods.exclude(claims=[]).values_list("node_name", "namespace", "claims")
    for node, held in dra.taken_on(cluster_id, claiming).items():
        for name, amount in held.items():
            sums[node][name] = sums[node].get(name, 0) + amount
    return sums


def _unhealthy_devices_and_daemon_sets(pods: QuerySet[Pod]) -> tuple[dict[str, dict[str, str]], dict[str, str]]:
    """Returns by node the pods of unhealthy devices, and the DaemonSet of its newest driver pod."""
    sick: dict[str, dict[str, str]] = defaultdict(dict)
    daemon_sets: dict[str, str] = {}
    driving = Q(operand=DRIVER, deleted_at=None) & ~Q(owner_uid="")
    speaking = pods.filter(driving | ~Q(unhealthy_devices=[])).annotate(is_driving=driving).order_by("created_at", "pk")
    columns = ("node_name", "namespace", "name", "unhealthy_devices", "owner_uid", "is_driving")
    for node, namespace, name, devices, owner_uid, is_driving in speaking.values_list(*columns):
        sick[node] |= dict.fromkeys(devices, f"{namespace}/{name}")
        if is_driving:
            daemon_sets[node] = owner_uid
    return sick, daemon_sets


def write(cluster_id: int, wrong: DifferingTaken) -> None:
    with count_written_nodes(cluster_id, chain.from_iterable(wrong.values())):
        for taken, ids in wrong.items():
            counts = dict(zip(COLUMNS, taken.counts, strict=True))
            Node.objects.filter(pk__in=ids).update(
                requested=dict(taken.requested),
                devices_unhealthy=dict(taken.sick),
                driver_daemon_set=taken.driver_daemon_set,
                **counts,
            )
