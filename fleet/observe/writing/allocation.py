"""How much of a node is taken: the sum over the pods bound to it that still hold theirs."""

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import chain

from django.db.models import Count, QuerySet

from fleet.allocation.kept import kept
from fleet.models import Node, Pod
from fleet.observe.writing import dra
from fleet.observe.writing.upsert import Written
from gpu.resources import Layout, count_taken

AT_ONCE = 500
COLUMNS = ("gpu_allocated", "slices_allocated", "shares_allocated")


@dataclass(frozen=True)
class Taken:
    """Of one node, by resource and in sum. Hashable: nodes on which the same is taken are written together."""

    requested: tuple[tuple[str, int], ...] = ()
    counts: tuple[int, int, int] = (0, 0, 0)  # whole GPUs, slices, shares
    sick: tuple[tuple[str, str], ...] = ()  # devices that the kubelet calls so, and the pod that has each

    @classmethod
    def of(cls, requested: Mapping[str, int], layout: Layout, sick: Mapping[str, str]) -> "Taken":
        counts = count_taken(requested, layout)
        taken = counts.whole or 0, counts.slices, counts.shares
        return cls(tuple(sorted(requested.items())), taken, tuple(sorted(sick.items())))


Differing = dict[Taken, list[int]]


def touched_by(written: Written) -> set[str]:
    """The nodes whose sum may have changed."""
    rows = [*written.alive, *written.gone, *(old for old, _ in written.changed)]
    return {row["node_name"] for row in rows if (row["resources"] or row["claims"]) and row["node_name"]}


def recut(written: Written) -> set[str]:
    """The nodes on which what a resource counts is another thing than before."""
    return {new["name"] for old, new in written.changed if old["layout"] != new["layout"]}


def count(cluster_id: int, names: Collection[str]) -> None:
    """Count again for these nodes. Inside the transaction that wrote the pods."""
    if names:
        _write(cluster_id, _differing(cluster_id, names))


def count_all(cluster_id: int) -> None:
    """Count again for the whole cluster, as after a list: in short transactions of its own."""
    for taken, ids in _differing(cluster_id, None).items():
        for start in range(0, len(ids), AT_ONCE):
            _write(cluster_id, {taken: ids[start : start + AT_ONCE]})


def adopt(cluster_id: int, nodes: Mapping[str, int]) -> set[str]:
    """Give new nodes the pods that were heard of before them, or that outlived a row of the same name.

    Returns the names of those that got some.
    """
    orphans: dict[str, list[int]] = defaultdict(list)
    found = Pod.objects.filter(cluster_id=cluster_id, node__isnull=True, node_name__in=list(nodes))
    for pod_id, name in found.values_list("id", "node_name"):
        orphans[name].append(pod_id)
    for name, ids in orphans.items():
        Pod.objects.filter(pk__in=ids).update(node_id=nodes[name])
    count(cluster_id, list(orphans))
    return set(orphans)


def _differing(cluster_id: int, names: Collection[str] | None) -> Differing:
    """The nodes whose sum is not what is written, by what it should be. Four queries, and two where DRA is used."""
    pods = Pod.objects.filter(cluster_id=cluster_id).not_done().exclude(node_name="").order_by()
    nodes = Node.objects.filter(cluster_id=cluster_id).order_by()
    if names is not None:
        pods, nodes = pods.filter(node_name__in=names), nodes.filter(name__in=names)
    requested, sick = _requested(cluster_id, pods), _sick(pods)
    wrong: Differing = defaultdict(list)
    columns = ("id", "name", "layout", "requested", "devices_unhealthy", *COLUMNS)
    for node_id, name, layout, was, ailing, *counts in nodes.values_list(*columns):
        taken = Taken.of(requested.get(name, {}), Layout.read(layout), sick.get(name, {}))
        if taken != Taken(tuple(sorted(was.items())), tuple(counts), tuple(sorted(ailing.items()))):
            wrong[taken].append(node_id)
    return wrong


def _requested(cluster_id: int, pods: QuerySet[Pod]) -> dict[str, dict[str, int]]:
    """By node and resource. Pods that ask for the same are counted by the database."""
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


def _sick(pods: QuerySet[Pod]) -> dict[str, dict[str, str]]:
    """By node and device, the pod that has it."""
    found: dict[str, dict[str, str]] = defaultdict(dict)
    columns = ("node_name", "namespace", "name", "unhealthy_devices")
    for node, namespace, name, devices in pods.exclude(unhealthy_devices=[]).values_list(*columns):
        found[node] |= dict.fromkeys(devices, f"{namespace}/{name}")
    return found


def _write(cluster_id: int, wrong: Differing) -> None:
    with kept(cluster_id, chain.from_iterable(wrong.values())):
        for taken, ids in wrong.items():
            counts = dict(zip(COLUMNS, taken.counts, strict=True))
            Node.objects.filter(pk__in=ids).update(
                requested=dict(taken.requested), devices_unhealthy=dict(taken.sick), **counts
            )
