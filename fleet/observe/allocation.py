"""How many GPUs of a node are taken: the sum over the pods bound to it that still hold theirs."""

from collections import defaultdict
from collections.abc import Collection, Mapping

from django.db import transaction
from django.db.models import Sum

from fleet.models import Node, Pod
from fleet.observe.rows.pod import DONE
from fleet.observe.upsert import Written

AT_ONCE = 500


def touched_by(written: Written) -> set[str]:
    """The nodes whose sum may have changed."""
    rows = [*written.alive, *written.gone, *(old for old, _ in written.changed)]
    return {row["node_name"] for row in rows if row["gpus"] and row["node_name"]}


def count(cluster_id: int, names: Collection[str]) -> None:
    """Count again for these nodes. Inside the transaction that wrote the pods."""
    if names:
        _write(_differing(cluster_id, names))


def count_all(cluster_id: int) -> None:
    """Count again for the whole cluster, as after a list: in short transactions of its own."""
    for taken, ids in _differing(cluster_id, None).items():
        for start in range(0, len(ids), AT_ONCE):
            with transaction.atomic():
                _write({taken: ids[start : start + AT_ONCE]})


def adopt(cluster_id: int, nodes: Mapping[str, int]) -> None:
    """Give new nodes the pods that were heard of before them, or that outlived a row of the same name."""
    orphans: dict[str, list[int]] = defaultdict(list)
    found = Pod.objects.filter(cluster_id=cluster_id, node__isnull=True, node_name__in=list(nodes))
    for pod_id, name in found.values_list("id", "node_name"):
        orphans[name].append(pod_id)
    for name, ids in orphans.items():
        Pod.objects.filter(pk__in=ids).update(node_id=nodes[name])
    count(cluster_id, list(orphans))


def _differing(cluster_id: int, names: Collection[str] | None) -> dict[int, list[int]]:
    """The nodes whose sum is not what is written, by what it should be. Costs two queries."""
    pods = Pod.objects.filter(cluster_id=cluster_id, gpus__gt=0).exclude(phase__in=DONE).exclude(node_name="")
    nodes = Node.objects.filter(cluster_id=cluster_id)
    if names is not None:
        pods, nodes = pods.filter(node_name__in=names), nodes.filter(name__in=names)
    taken = dict(pods.values("node_name").annotate(taken=Sum("gpus")).values_list("node_name", "taken"))
    wrong: dict[int, list[int]] = defaultdict(list)
    for node_id, name, written in nodes.values_list("id", "name", "gpu_allocated"):
        if written != taken.get(name, 0):
            wrong[taken.get(name, 0)].append(node_id)
    return wrong


def _write(wrong: Mapping[int, list[int]]) -> None:
    for taken, ids in wrong.items():
        Node.objects.filter(pk__in=ids).update(gpu_allocated=taken)
