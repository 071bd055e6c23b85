"""The placement report of a pool: reads its GPU nodes, and the running pods on them."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
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
from capacity.placements.pod_classes import class_of
from fleet.allocation.gpu_holders import allocations_on
from fleet.models import Bookmark, Node, Pod, Pool
from fleet.models.node import members_of
from fleet.models.pool import CLASS_PLACEMENTS, ClassPlacement, PlacementPolicy
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


# The state of a pool is the first of these that a part of it has.
WORST_FIRST = (
    PolicyState.BROKEN,
    PolicyState.UNKNOWN,
    PolicyState.KEPT,
    PolicyState.NO_PODS,
    PolicyState.NO_POLICY,
)


@dataclass(frozen=True)
class SharedFigures:
    nodes: int  # with shared GPUs
    read: int  # of these
    gpus: int  # with pods of more than one namespace
    most: int  # namespaces on one GPU
    unplaced: int  # pods on unknown GPUs of these nodes


@dataclass(frozen=True)
class PolicyPlacement:
    """The running pods under one policy: of a class with a policy of its own, or all others of the pool."""

    policy: PlacementPolicy
    label: str  # to spread over; blank: hosts
    pack: PackFigures
    spread: SpreadFigures
    workload_class: str = ""  # blank: all pods whose class has no policy of its own

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


@dataclass(frozen=True)
class PlacementReport(PolicyPlacement):
    classes: Sequence[PolicyPlacement] = ()  # those with a policy of their own
    shared: SharedFigures | None = None  # None: not asked for, or no GPU of the pool is shared

    @property
    def parts(self) -> list[PolicyPlacement]:
        return [self, *self.classes]

    @property
    def worst(self) -> PolicyState:
        states = {part.state for part in self.parts}
        return next(state for state in WORST_FIRST if state in states)


def placement_of_pool(pool: Pool, user: User, *, now: datetime) -> PlacementReport | None:
    """Returns the report of the nodes and pods that the user sees. None: nodes or pods were never read.

    Six queries, and five more where GPUs are shared.
    """
    nodes = Node.objects.visible_to(user)
    report = _report(pool, nodes, Pod.objects.visible_to(user))
    if report is None:
        return None
    return replace(report, shared=_shared(_gpu_nodes(pool, nodes).filter(shares_allocatable__gt=0), now=now))


def placement_for_findings(pool: Pool) -> PlacementReport | None:
    """Returns the report of all nodes and pods, without shared GPUs. Six queries."""
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
    counted = _with_owner(pool.cluster_id, list(running.values("node", "gpus", *OWNER).annotate(pods=Count("pk"))))
    own = {
        name: policy
        for name, column in CLASS_PLACEMENTS.items()
        if (policy := getattr(pool, column)) != ClassPlacement.AS_POOL
    }
    found = {
        name: _placement(
            rows, [row for row in counted if (row.workload_class if row.workload_class in own else "") == name], counted
        )
        for name in ("", *own)
    }
    label = pool.spread_label
    return PlacementReport(
        PlacementPolicy(pool.placement_policy),
        label,
        *found[""],
        classes=[PolicyPlacement(PlacementPolicy(policy), label, *found[name], name) for name, policy in own.items()],
    )


@dataclass(frozen=True)
class _CountedPods:
    """Running pods of one node that are alike."""

    node: int
    gpus: int  # of each
    pods: int
    workload: str  # its topmost owner; blank: nothing controls them
    workload_class: str  # blank: the kind tells none


def _with_owner(cluster_id: int, counted: Sequence[Mapping[str, Any]]) -> list[_CountedPods]:
    """Returns the pods with their topmost owners, so that those of a Deployment's ReplicaSets count together."""
    above = chains_above({row["owner_uid"] for row in counted if row["owner_uid"]}, clusters=[cluster_id])
    found = []
    for row in counted:
        chain = [(row["owner_kind"], row["owner_name"]), *above.get((cluster_id, row["owner_uid"]), ())]
        kind, name = chain[-1]
        its_class = class_of(kind for kind, _ in reversed(chain))
        workload = f"{kind} {row['namespace']}/{name}" if name else ""
        found.append(_CountedPods(row["node"], row["gpus"], row["pods"], workload, its_class or ""))
    return found


def _placement(
    nodes: Sequence[Mapping[str, Any]], some: Sequence[_CountedPods], every: Iterable[_CountedPods]
) -> tuple[PackFigures, SpreadFigures]:
    """Compares some of the pods; the others stay."""
    pods: dict[int, Counter[int]] = defaultdict(Counter)
    domains = {row["pk"]: row["domain"] for row in nodes if row["domain"]}
    workloads: dict[str, Counter[str]] = defaultdict(Counter)
    for row in some:
        if row.gpus:
            pods[row.node][row.gpus] += row.pods
        if row.workload and row.node in domains:
            workloads[row.workload][domains[row.node]] += row.pods
    held: Counter[int] = Counter()
    for row in every:
        held[row.node] += row.gpus * row.pods
    own = {key: sum(size * number for size, number in its.items()) for key, its in pods.items()}
    used = [
        UsedNode(node["gpu_product"], node["gpu_allocatable"] or 0, pods[key], held[key] - own[key])
        for node in nodes
        if (key := node["pk"]) in pods and not node["shares_allocatable"]
    ]
    unlabelled = len(nodes) - len(domains)
    return pack_figures(used), spread_figures(workloads, domains=len(set(domains.values())), unlabelled=unlabelled)


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
