"""The free GPUs of a pool or a cluster: reads its nodes with free GPUs, and the pods around."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, F, Q, TextField
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Cast

from capacity.free_gpus.stranded_gpus import FreeGpus, NodeWithRoom, UsualPod, free_gpus
from capacity.wait_reasons.node_index import CORDON_KEY
from capacity.wait_reasons.requirements import NodeTaint, read_taint, read_toleration
from fleet.allocation.cpu_memory import WHOSE
from fleet.models import Bookmark, Cluster, Node, Pod, Pool
from fleet.models.node import members_of
from gpu.labels import RACK_LABELS
from gpu.resources import Layout, ResourceKind, fraction_of, is_gpu_resource
from kube.resources import NODES, PODS
from people.models import User

HOLDS_GPUS = Q(gpu_allocated__gt=0) | Q(slices_allocated__gt=0) | Q(shares_allocated__gt=0)
HAS_ROOM = Q(gpus_free__gt=0) | Q(slices_allocatable__gt=F("slices_allocated"))
COLUMNS = (
    "layout", "gpu_product", "gpus_free", "slices_allocatable", "slices_allocated", "is_ready", "is_unschedulable",
    "nvlink_domain",
    "cpu_allocatable_m", "memory_allocatable_bytes",
    *(f"cpu_{whose}_m" for whose in WHOSE), *(f"memory_{whose}_bytes" for whose in WHOSE),
)  # fmt: skip
TEXTS = ("taints", "allocatable", "requested")
NVLINK = "NVLink domain"
WAITS = Q(node_name="", phase="Pending", deleted_at=None)
MOST_TOLERATIONS = 1000  # different lists of waiting pods


@dataclass(frozen=True)
class FreeGpuReport:
    found: FreeGpus
    waiting: int  # GPU pods of the cluster without a node
    waiting_gpus: int  # whole GPUs that they request
    shared_nodes: int  # nodes whose GPUs are shared; these GPUs are not counted


@dataclass(frozen=True)
class _PodKind:
    """GPU pods with equal requests."""

    gpus: int
    cpu_m: int
    memory_bytes: int
    resources: Mapping[str, int]
    pods: int
    waiting: int


@dataclass(frozen=True)
class _TaintedNodes:
    """Nodes with the same taints, which may be none."""

    taints: Sequence[NodeTaint]
    nodes: int
    holding: int  # nodes with GPU pods
    shared: int  # nodes with shared GPUs


def free_gpus_of_pool(pool: Pool, user: User) -> FreeGpuReport | None:
    """Returns the free GPUs of a pool's nodes. None: its nodes or pods were never read. Five queries."""
    return _report_of_members(pool, Node.objects.visible_to(user), Pod.objects.visible_to(user))


def all_free_gpus_of_pool(pool: Pool) -> FreeGpuReport | None:
    """Returns the free GPUs of a pool for its history, as everybody who sees the pool sees them. Five queries."""
    return _report_of_members(pool, Node.objects.all(), Pod.objects.all())


def free_gpus_of_cluster(cluster: Cluster, user: User) -> FreeGpuReport | None:
    """Returns the free GPUs of a cluster's visible nodes. None: its nodes or pods were never read. Five queries."""
    nodes, pods = Node.objects.visible_to(user), Pod.objects.visible_to(user)
    return _report(cluster.pk, nodes, pods, Q(node__isnull=False))


def all_free_gpus_of_cluster(cluster_id: int) -> FreeGpuReport | None:
    """Returns the free GPUs of a cluster for its history, as everybody who sees all of it. Five queries."""
    return _report(cluster_id, Node.objects.all(), Pod.objects.all(), Q(node__isnull=False))


def _report_of_members(pool: Pool, nodes: Any, pods: Any) -> FreeGpuReport | None:
    members = members_of([pool.pk])
    labels = [pool.spread_label] if pool.spread_label else RACK_LABELS
    return _report(pool.cluster_id, nodes.filter(pk__in=members), pods, Q(node__in=members), labels)


def _report(
    cluster_id: int, visible_nodes: Any, visible_pods: Any, pods_of: Q, racks: Sequence[str] = RACK_LABELS
) -> FreeGpuReport | None:
    if not Bookmark.objects.knows_all(cluster_id, NODES.name, PODS.name):
        return None
    nodes = visible_nodes.filter(cluster=cluster_id).with_gpus().order_by()
    pods = visible_pods.filter(cluster=cluster_id).tenants().not_done().order_by()
    kinds = _kinds(pods, WAITS | pods_of)
    tainted = _tainted(nodes)
    closing = _closing_taints(tainted, pods.filter(WAITS))
    return FreeGpuReport(
        free_gpus(_nodes(nodes.filter(HAS_ROOM), closing, racks), _usual_request(kinds)),
        waiting=sum(kind.waiting for kind in kinds),
        waiting_gpus=sum(kind.gpus * kind.waiting for kind in kinds),
        shared_nodes=sum(each.shared for each in tainted),
    )


def _kinds(pods: Any, are_counted: Q) -> list[_PodKind]:
    """Returns all kinds of the cluster, so that each pool knows the same requested profiles."""
    counted = pods.annotate(resources_text=Cast("resources", TextField())).values_list(
        "gpus", "cpu_m", "memory_bytes", "resources_text"
    )
    rows = counted.annotate(pods=Count("pk", filter=are_counted), waiting=Count("pk", filter=WAITS))
    return [_PodKind(gpus, cpu_m, memory, json.loads(text), *numbers) for gpus, cpu_m, memory, text, *numbers in rows]


def _usual_request(kinds: Sequence[_PodKind]) -> UsualPod:
    """Returns the usual request: of the size that has most of all GPUs, with medians for each GPU."""
    by_size: Counter[int] = Counter()
    for kind in kinds:
        by_size[kind.gpus] += kind.gpus * kind.pods
    size = max((each for each in by_size if each and by_size[each]), key=lambda each: (by_size[each], each), default=1)
    whole = [kind for kind in kinds if kind.gpus and kind.pods]
    return UsualPod(
        size,
        cpu_m=_median((kind.cpu_m // kind.gpus, kind.gpus * kind.pods) for kind in whole),
        memory_bytes=_median((kind.memory_bytes // kind.gpus, kind.gpus * kind.pods) for kind in whole),
        profiles=frozenset(name for kind in kinds for name in kind.resources),
    )


def _median(weighed: Iterable[tuple[int, int]]) -> int:
    """Returns the median of numbers with weights; 0 of none."""
    ordered = sorted(weighed)
    half, passed = sum(weight for _, weight in ordered) / 2, 0
    for number, weight in ordered:
        passed += weight
        if passed >= half:
            return number
    return 0


def _tainted(nodes: Any) -> list[_TaintedNodes]:
    counts = {
        "nodes": Count("pk"),
        "holding": Count("pk", filter=HOLDS_GPUS),
        "shared": Count("pk", filter=Q(shares_allocatable__gt=0)),
    }
    rows = nodes.annotate(taints_text=Cast("taints", TextField())).values_list("taints_text").annotate(**counts)
    return [_TaintedNodes(_taints(text), *numbers) for text, *numbers in rows]


def _closing_taints(tainted: Iterable[_TaintedNodes], waiting: Any) -> frozenset[NodeTaint]:
    """Returns the taints that keep GPU pods away: no waiting pod tolerates them, and few of their nodes have GPU pods.

    Tolerations of running pods are not stored. A taint of the resource's own name is tolerated, as the admission
    plugin ExtendedResourceToleration adds that toleration.
    """
    of: Counter[NodeTaint] = Counter()
    in_use: Counter[NodeTaint] = Counter()
    for each in tainted:
        for taint in each.taints:
            of[taint] += each.nodes
            in_use[taint] += each.holding
    lists = waiting.values_list("placement__tolerations", flat=True).distinct()[:MOST_TOLERATIONS] if of else ()
    tolerated = [read_toleration(each) for tolerations in lists for each in tolerations or ()]
    return frozenset(
        taint
        for taint in of
        if 2 * in_use[taint] < of[taint]
        and not is_gpu_resource(taint.key)
        and not any(each.tolerates(taint) for each in tolerated)
    )


def _taints(text: str) -> list[NodeTaint]:
    """Returns the taints that keep pods away. A cordon's own taint counts as the cordon."""
    found = map(read_taint, json.loads(text))
    return [taint for taint in found if taint.keeps_away and taint.key != CORDON_KEY]


def _nodes(nodes: Any, closing: frozenset[NodeTaint], racks: Sequence[str]) -> Iterator[NodeWithRoom]:
    texts = {f"{column}_text": Cast(column, TextField()) for column in TEXTS}
    labels = {f"rack_{place}": KeyTextTransform(label, "labels") for place, label in enumerate(racks)}
    for row in nodes.annotate(**texts, **labels).values(*COLUMNS, *texts, *labels):
        yield NodeWithRoom(
            gpus=max(0, row["gpus_free"]),
            slices=_free_slices(row) if row["slices_allocatable"] > row["slices_allocated"] else {},
            is_ready=row["is_ready"] is True,
            is_cordoned=row["is_unschedulable"],
            is_tainted=bool(closing) and not closing.isdisjoint(_taints(row["taints_text"])),
            cpu_m=_free_amount(row, "cpu", "m"),
            memory_bytes=_free_amount(row, "memory", "bytes"),
            domains={NVLINK: row["nvlink_domain"], **_racks(row, racks)},
        )


def _racks(row: Mapping[str, Any], labels: Sequence[str]) -> dict[str, str]:
    return {label: row[f"rack_{place}"] or "" for place, label in enumerate(labels)}


def _free_slices(row: Mapping[str, Any]) -> dict[str, float]:
    """Returns the free slices by resource, as parts of a GPU."""
    layout, requested = Layout.read(row["layout"]), json.loads(row["requested_text"])
    free = {name: number - requested.get(name, 0) for name, number in json.loads(row["allocatable_text"]).items()}
    return {
        name: fraction_of({name: number}, layout, product=row["gpu_product"]).gpus
        for name, number in free.items()
        if number > 0 and layout.way(name).kind is ResourceKind.SLICE
    }


def _free_amount(row: Mapping[str, Any], what: str, unit: str) -> int | None:
    allocatable = row[f"{what}_allocatable_{unit}"]
    return None if allocatable is None else allocatable - sum(row[f"{what}_{whose}_{unit}"] for whose in WHOSE)
