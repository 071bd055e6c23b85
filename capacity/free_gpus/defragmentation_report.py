"""Proposals to defragment a pool: reads its nodes, the pods on them, and the budgets of these pods."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import TextField
from django.db.models.functions import Cast

from capacity.free_gpus.defragmentation import SIZES, PackedNode, Proposal, propose
from capacity.free_gpus.movable_pods import ColumnValues, PodsOnNodes
from fleet.allocation.cpu_memory import WHOSE
from fleet.freshness.cluster import load_cluster_freshness
from fleet.freshness.kinds import Freshness
from fleet.models import Bookmark, Cluster, DisruptionBudget, Node, Pool
from fleet.models.node import members_of
from kube.resources import DISRUPTION_BUDGETS, NODES, PODS
from people.models import User

CPU_AND_MEMORY = (
    "cpu_allocatable_m", "memory_allocatable_bytes", *(f"cpu_{whose}_m" for whose in WHOSE),
    *(f"memory_{whose}_bytes" for whose in WHOSE),
)  # fmt: skip
COLUMNS = ("pk", "name", "gpu_product", "gpu_allocatable", "gpus_free", *CPU_AND_MEMORY)


@dataclass(frozen=True)
class DefragmentationReport:
    proposals: Sequence[Proposal]  # one for each size
    nodes: int  # that were compared
    staying: int  # of these, nodes with a pod that must stay
    as_of: datetime | None  # last update of the nodes and pods; None: they are current


def defragmentation_of_pool(pool: Pool, user: User, *, now: datetime) -> DefragmentationReport | None:
    """Returns the proposals for the nodes and pods that the user sees. None: something was never read. Seven queries,
    and those of `chains_above`.
    """
    if not Bookmark.objects.knows_all(pool.cluster_id, NODES.name, PODS.name, DISRUPTION_BUDGETS.name):
        return None
    members = members_of([pool.pk])
    nodes = Node.objects.visible_to(user).filter(
        pk__in=members, is_ready=True, is_unschedulable=False, gpu_allocatable__gt=0, shares_allocatable=0,
        slices_allocatable=0,
    )  # fmt: skip
    rows = list(nodes.annotate(taints_text=Cast("taints", TextField())).values(*COLUMNS, "taints_text"))
    budgets = list(DisruptionBudget.objects.filter(cluster=pool.cluster_id))
    packed = _packed_nodes(rows, PodsOnNodes.load(pool, user, budgets), now=now)
    allowed = allowed_by(budgets)
    return DefragmentationReport(
        [propose(packed, size, allowed) for size in SIZES],
        len(packed),
        sum(not node.is_source for node in packed),
        _as_of(pool.cluster, now=now),
    )


def allowed_by(budgets: Sequence[DisruptionBudget]) -> dict[int, int]:
    """Returns the evictions that each budget allows now. One that is not counted yet allows none."""
    return {budget.pk: budget.disruptions_allowed or 0 for budget in budgets}


def _as_of(cluster: Cluster, *, now: datetime) -> datetime | None:
    by_kind = load_cluster_freshness(cluster, now=now).by_kind
    old = [by_kind[kind].last_seen_at for kind in (NODES.name, PODS.name) if by_kind[kind].state is not Freshness.LIVE]
    return min(filter(None, old), default=None)


def _packed_nodes(rows: Sequence[ColumnValues], pods: PodsOnNodes, *, now: datetime) -> list[PackedNode]:
    found = []
    for row in rows:
        there = pods.by_node.get(row["pk"], ())
        found.append(
            PackedNode(
                key=row["pk"],
                name=row["name"],
                kind=(row["gpu_product"], row["gpu_allocatable"], taints_in(row["taints_text"])),
                gpus=row["gpu_allocatable"],
                free=max(0, row["gpus_free"]),
                cpu_m=free_amount(row, "cpu", "m"),
                memory_bytes=free_amount(row, "memory", "bytes"),
                pods=[pods.movable(pod, pod["gpus"], now=now) for pod in there],
                is_source=all(_has_whole_gpus(pod) and pods.can_start_again(pod) for pod in there),
            )
        )
    return found


def _has_whole_gpus(pod: ColumnValues) -> bool:
    return pod["gpus"] > 0 and len(pod["resources"]) == 1


def taints_in(text: str) -> tuple[str, ...]:
    """Returns the taints as text: pods move between nodes with equal ones, since their tolerations are not stored."""
    return tuple(sorted(json.dumps(each, sort_keys=True) for each in json.loads(text)))


def free_amount(row: ColumnValues, what: str, unit: str) -> int:
    """Returns the free amount. 0: not reported, so nothing moves there."""
    return max(0, (row[f"{what}_allocatable_{unit}"] or 0) - sum(row[f"{what}_{whose}_{unit}"] for whose in WHOSE))
