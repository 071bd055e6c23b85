"""The placement report of a pool: reads its GPU nodes, and the running pods on them."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from django.db.models import Count, F
from django.db.models.fields.json import KeyTextTransform

from capacity.placements.placement_figures import (
    PackFigures,
    SpreadFigures,
    UsedNode,
    pack_figures,
    spread_figures,
)
from fleet.allocation.gpu_holders import allocations_on
from fleet.models import Bookmark, Node, Pod, Pool
from fleet.models.node import members_of
from fleet.models.pool import PlacementPolicy
from fleet.owner_chains import chains_above
from kube.resources import NODES, PODS
from people.models import User

SHARED_AT_MOST = 200  # nodes with shared GPUs whose pods are read
OWNER = ("namespace", "owner_kind", "owner_name", "owner_uid")


class PolicyState(StrEnum):
    NO_POLICY = "no_policy"
    UNKNOWN = "unknown"
    NO_PODS = "no_pods"  # that the policy compares
    KEPT = "kept"
    BROKEN = "broken"


@dataclass(frozen=True)
class SharedFigures:
    nodes: int  # with shared GPUs
    read: int  # of these
    gpus: int  # with pods of more than one namespace
    most: int  # namespaces on one GPU
    unplaced: int  # pods on unknown GPUs of these nodes


@dataclass(frozen=True)
class PlacementReport:
    policy: PlacementPolicy
    label: str  # to spread over; blank: hosts
    pack: PackFigures
    spread: SpreadFigures
    shared: SharedFigures | None = None  # None: not asked for, or no GPU of the pool is shared

    @property
    def state(self) -> PolicyState:
        if self.policy == PlacementPolicy.NONE:
            return PolicyState.NO_POLICY
        is_pack = self.policy == PlacementPolicy.PACK
        if not is_pack and self.spread.domains < 2:
            return PolicyState.UNKNOWN
        if not (self.pack.used if is_pack else self.spread.workloads):
            return PolicyState.NO_PODS
        is_broken = self.pack.is_broken if is_pack else self.spread.concentrated
        return PolicyState.BROKEN if is_broken else PolicyState.KEPT


def placement_of_pool(pool: Pool, user: User, *, now: datetime) -> PlacementReport | None:
    """Returns the report of the nodes and pods that the user sees. None: nodes or pods were never read.

    Four queries, and five more where GPUs are shared.
    """
    nodes = Node.objects.visible_to(user)
    report = _report(pool, nodes, Pod.objects.visible_to(user))
    if report is None:
        return None
    shared = _shared(_gpu_nodes(pool, nodes).filter(shares_allocatable__gt=0), now=now)
    return PlacementReport(report.policy, report.label, report.pack, report.spread, shared)


def placement_for_findings(pool: Pool) -> PlacementReport | None:
    """Returns the report of all nodes and pods, without shared GPUs. Four queries."""
    return _report(pool, Node.objects.all(), Pod.objects.all())


def _gpu_nodes(pool: Pool, nodes: Any) -> Any:
    return nodes.filter(cluster=pool.cluster_id, pk__in=members_of([pool.pk])).with_gpus().order_by("name")


def _report(pool: Pool, nodes: Any, pods: Any) -> PlacementReport | None:
    if not Bookmark.objects.knows_all(pool.cluster_id, NODES.name, PODS.name):
        return None
    domain = KeyTextTransform(pool.spread_label, "labels") if pool.spread_label else F("name")
    rows = list(
        _gpu_nodes(pool, nodes)
        .annotate(domain=domain)
        .values("pk", "domain", "gpu_product", "gpu_allocatable", "shares_allocatable")
    )
    running = pods.filter(node__in=members_of([pool.pk]), phase="Running", deleted_at=None).tenants().order_by()
    counted = list(running.values("node", "gpus", *OWNER).annotate(pods=Count("pk")))
    domains = {row["pk"]: row["domain"] for row in rows if row["domain"]}
    spread = spread_figures(
        _by_workload(pool.cluster_id, counted, domains),
        domains=len(set(domains.values())),
        unlabelled=len(rows) - len(domains),
    )
    pack = pack_figures(_used_nodes(rows, counted))
    return PlacementReport(PlacementPolicy(pool.placement_policy), pool.spread_label, pack, spread)


def _used_nodes(nodes: Iterable[Mapping[str, Any]], counted: Iterable[Mapping[str, Any]]) -> list[UsedNode]:
    pods: dict[int, Counter[int]] = defaultdict(Counter)
    for row in counted:
        if row["gpus"]:
            pods[row["node"]][row["gpus"]] += row["pods"]
    return [
        UsedNode(node["gpu_product"], node["gpu_allocatable"] or 0, pods[node["pk"]])
        for node in nodes
        if node["pk"] in pods and not node["shares_allocatable"]
    ]


def _by_workload(
    cluster_id: int, counted: Sequence[Mapping[str, Any]], domains: Mapping[int, str]
) -> dict[str, Counter[str]]:
    """Returns the running pods by workload and domain. Pods of a Deployment's ReplicaSets count together."""
    uids = {row["owner_uid"] for row in counted if row["owner_uid"]}
    above = chains_above(uids, clusters=[cluster_id])
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for row in counted:
        chain = above.get((cluster_id, row["owner_uid"]))
        kind, name = chain[-1] if chain else (row["owner_kind"], row["owner_name"])
        if name and row["node"] in domains:
            found[f"{kind} {row['namespace']}/{name}"][domains[row["node"]]] += row["pods"]
    return found


def _shared(nodes: Any, *, now: datetime) -> SharedFigures | None:
    number = nodes.count()
    if not number:
        return None
    read = list(nodes[:SHARED_AT_MOST])
    found = list(allocations_on(read, now=now).values())
    tenants = [
        len({holder.pod.namespace for holder in board.allocations if not holder.only_looks})
        for its in found
        for board in its.boards
    ]
    return SharedFigures(
        number,
        len(read),
        sum(namespaces > 1 for namespaces in tenants),
        max(tenants, default=0),
        len({holder.pod.pk for its in found for holder in its.unplaced}),
    )
