"""Proposals to defragment a pool: reads its nodes, the pods on them, and the budgets of these pods."""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import TextField
from django.db.models.functions import Cast

from capacity.free_gpus.defragmentation import SIZES, MovablePod, PackedNode, Proposal, propose
from fleet.allocation.cpu_memory import WHOSE
from fleet.freshness.cluster import load_cluster_freshness
from fleet.freshness.kinds import Freshness
from fleet.models import Bookmark, Cluster, DisruptionBudget, Node, Pod, Pool
from fleet.models.node import members_of
from gpu.evictions import PASSED_OVER, REPLICAS
from kube.resources import DISRUPTION_BUDGETS, NODES, PODS
from kube.selectors import readable
from people.models import User

HOUR_S = 3600
COLUMNS = (
    "pk", "name", "gpu_product", "gpu_allocatable", "gpus_free", "cpu_allocatable_m", "memory_allocatable_bytes",
    *(f"cpu_{whose}_m" for whose in WHOSE), *(f"memory_{whose}_bytes" for whose in WHOSE),
)  # fmt: skip
POD_COLUMNS = (
    "pk", "node_id", "namespace", "name", "owner_kind", "owner_name", "gpus", "cpu_m", "memory_bytes", "started_at",
    "has_empty_dir", "is_tenant", "resources", "claims", "labels",
)  # fmt: skip
ColumnValues = Mapping[str, Any]


@dataclass(frozen=True)
class DefragmentationReport:
    proposals: Sequence[Proposal]  # one for each size
    nodes: int  # that were compared
    staying: int  # of these, nodes with a pod that must stay
    as_of: datetime | None  # last update of the nodes and pods; None: they are current


def defragmentation_of_pool(pool: Pool, user: User, *, now: datetime) -> DefragmentationReport | None:
    """Returns the proposals for the nodes and pods that the user sees. None: something was never read. Six queries."""
    if not Bookmark.objects.knows_all(pool.cluster_id, NODES.name, PODS.name, DISRUPTION_BUDGETS.name):
        return None
    members = members_of([pool.pk])
    nodes = Node.objects.visible_to(user).filter(
        pk__in=members, is_ready=True, is_unschedulable=False, gpu_allocatable__gt=0, shares_allocatable=0,
        slices_allocatable=0,
    )  # fmt: skip
    rows = list(nodes.annotate(taints_text=Cast("taints", TextField())).values(*COLUMNS, "taints_text"))
    visible = Pod.objects.visible_to(user).filter(node__in=members).not_done().exclude(owner_kind__in=PASSED_OVER)
    pods: dict[int, list[ColumnValues]] = defaultdict(list)
    for pod in visible.order_by("pk").values(*POD_COLUMNS, "deleted_at").iterator():
        pods[pod["node_id"]].append(pod)
    budgets = list(DisruptionBudget.objects.filter(cluster=pool.cluster_id))
    packed = _packed_nodes(rows, pods, budgets, now=now)
    allowed = {budget.pk: budget.disruptions_allowed or 0 for budget in budgets}  # not counted yet allows nothing
    return DefragmentationReport(
        [propose(packed, size, allowed) for size in SIZES],
        len(packed),
        sum(not node.is_source for node in packed),
        _as_of(pool.cluster, now=now),
    )


def _as_of(cluster: Cluster, *, now: datetime) -> datetime | None:
    by_kind = load_cluster_freshness(cluster, now=now).by_kind
    old = [by_kind[kind].last_seen_at for kind in (NODES.name, PODS.name) if by_kind[kind].state is not Freshness.LIVE]
    return min(filter(None, old), default=None)


def _packed_nodes(
    rows: Sequence[ColumnValues],
    pods: Mapping[int, Sequence[ColumnValues]],
    budgets: Sequence[DisruptionBudget],
    *,
    now: datetime,
) -> list[PackedNode]:
    gangs = _gangs(pods.values())
    by_namespace: dict[str, list[tuple[int, Any]]] = defaultdict(list)
    for budget in budgets:
        by_namespace[budget.namespace].append((budget.pk, readable(budget.selector)))
    found = []
    for row in rows:
        there = pods.get(row["pk"], ())
        found.append(
            PackedNode(
                key=row["pk"],
                name=row["name"],
                kind=(row["gpu_product"], row["gpu_allocatable"], _taints(row["taints_text"])),
                gpus=row["gpu_allocatable"],
                free=max(0, row["gpus_free"]),
                cpu_m=_free(row, "cpu", "m"),
                memory_bytes=_free(row, "memory", "bytes"),
                pods=[_movable(pod, by_namespace[pod["namespace"]], now=now) for pod in there],
                is_source=all(_can_move(pod, gangs) for pod in there),
            )
        )
    return found


def _gangs(by_node: Iterable[Sequence[ColumnValues]]) -> set[tuple[str, str, str]]:
    """Returns the jobs with pods on several nodes: one that moves ends them all."""
    places: dict[tuple[str, str, str], set[int]] = defaultdict(set)
    for there in by_node:
        for pod in there:
            if pod["owner_kind"] not in REPLICAS:
                places[_owner(pod)].add(pod["node_id"])
    return {owner for owner, nodes in places.items() if len(nodes) > 1}


def _can_move(pod: ColumnValues, gangs: set[tuple[str, str, str]]) -> bool:
    """Tells whether a controller starts the pod again, on whole GPUs of another node, without the end of other pods."""
    is_whole = pod["is_tenant"] and pod["gpus"] > 0 and not pod["claims"] and len(pod["resources"]) == 1
    return bool(pod["owner_kind"]) and is_whole and pod["deleted_at"] is None and _owner(pod) not in gangs


def _movable(pod: ColumnValues, budgets: Sequence[tuple[int, Any]], *, now: datetime) -> MovablePod:
    is_job = pod["owner_kind"] not in REPLICAS
    ran_h = max(0.0, (now - pod["started_at"]).total_seconds() / HOUR_S) if pod["started_at"] and is_job else 0.0
    return MovablePod(
        key=pod["pk"],
        name=f"{pod['namespace']}/{pod['name']}",
        owner=f"{pod['owner_kind']} {pod['namespace']}/{pod['owner_name']}",
        gpus=pod["gpus"],
        cpu_m=pod["cpu_m"],
        memory_bytes=pod["memory_bytes"],
        gpu_hours=pod["gpus"] * ran_h,
        is_job=is_job,
        has_empty_dir=pod["has_empty_dir"],
        budgets=tuple(key for key, selector in budgets if selector is not None and selector.matches(pod["labels"])),
    )


def _owner(pod: ColumnValues) -> tuple[str, str, str]:
    return pod["owner_kind"], pod["namespace"], pod["owner_name"]


def _taints(text: str) -> tuple[str, ...]:
    """Returns the taints as text: pods move between nodes with equal ones, since their tolerations are not stored."""
    return tuple(sorted(json.dumps(each, sort_keys=True) for each in json.loads(text)))


def _free(row: ColumnValues, what: str, unit: str) -> int:
    """Returns the free amount. 0: not reported, so nothing moves there."""
    return max(0, (row[f"{what}_allocatable_{unit}"] or 0) - sum(row[f"{what}_{whose}_{unit}"] for whose in WHOSE))
