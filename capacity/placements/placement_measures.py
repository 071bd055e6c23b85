"""The costs and risks of a placement of pods in a pool, as measured: a choice between pack and spread rests on them.

A node is full in an hour in which all its GPUs were allocated. Heat, power and throttling are compared between full and
other nodes, for GPUs that were busy for at least half of the hour.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db.models import Avg, Count, F, Max, Q, Sum
from django.db.models.fields.json import KeyTextTransform

from capacity.free_gpus.movable_pods import PodsOnNodes
from capacity.models import FreeGpuSample
from capacity.placements.full_nodes import is_full
from capacity.placements.numa_figures import NumaFigures
from capacity.placements.numa_rows import numa_of_nodes
from capacity.placements.service_level_history import ServiceLevelComparison, service_level_of_pool
from fleet.event_kinds import OPENED
from fleet.models import Bookmark, DomainEvent, GoneNode, Node, Pod, Pool
from fleet.models.node import members_of
from gpu.resources import Layout, fraction_of
from health.models import GpuHour
from health.rules.base import Severity
from kube.resources import NODES, PODS
from people.models import User

NODES_AT_MOST = 200  # by name, whose hours are compared
HOURS = 24
BUSY_S = 1800  # under load, of a GPU that worked
DAYS_OF_SAMPLES, DAYS_OF_FAILURES = 7, 30
FAILURES_AT_MOST = 2000  # findings, the newest
TOGETHER = timedelta(minutes=10)  # failures of one cause are found within this time. Ours
NUMA_REFUSAL = "TopologyAffinityError"


@dataclass(frozen=True)
class HeatFigures:
    """The heat of GPUs that worked, on full or on other nodes. None: not exported."""

    node_hours: int = 0
    temperature: float | None = None  # mean, °C
    temperature_max: float | None = None
    power_watts: float | None = None  # mean of a GPU
    throttled: float | None = None  # part of the time, 0 to 1

    @property
    def percent_throttled(self) -> float | None:
        return None if self.throttled is None else 100 * self.throttled


@dataclass(frozen=True)
class FailureFigures:
    """Critical findings about nodes of the pool. Those within ten minutes of each other are one failure."""

    failures: int
    in_one_domain: int | None  # of these, with several nodes of one domain; None: the policy names no label
    elsewhere: int  # of these, with several nodes that share no domain
    unknown: int  # of these, with several nodes, of which some that are gone or lack the label may share one
    most_nodes: int
    days: int
    hours: int  # whole hours in which the cluster was watched, within these days
    is_cut: bool  # there were more findings than are read


@dataclass(frozen=True)
class NodeLoss:
    """The cost of the failure of one node now, in GPU-hours. A job ends as a whole."""

    key: int
    name: str
    workloads: int
    gpu_hours: float  # work of jobs
    loading_gpu_hours: float  # until the pods are Ready again, as far as their workloads tell

    @property
    def total(self) -> float:
        return self.gpu_hours + self.loading_gpu_hours


@dataclass(frozen=True)
class PlacementMeasures:
    stranded: float | None  # mean of free GPUs that the usual pod could not use; None: no samples
    stranded_hours: int  # samples of the mean, one an hour
    full: HeatFigures
    other: HeatFigures
    failures: FailureFigures
    losses: Sequence[NodeLoss]  # of nodes with tenants' GPU pods, the dearest first
    numa_refusals: int  # pods on the nodes that the kubelet refused, since no NUMA node had room
    service_level: ServiceLevelComparison | None  # None: the pool has none
    numa: NumaFigures | None  # None: nothing tells the NUMA nodes of pods
    nodes: int  # with GPUs
    compared: int  # of these, whose hours are compared

    @property
    def mean_loss(self) -> float | None:
        """Returns the mean over all nodes with GPUs, since each may fail. None: there are none."""
        return sum(loss.total for loss in self.losses) / self.nodes if self.nodes else None

    @property
    def worst(self) -> NodeLoss | None:
        return self.losses[0] if self.losses else None


def measures_of_pool(pool: Pool, user: User, *, now: datetime) -> PlacementMeasures | None:
    """Returns the measures of the nodes and pods that the user sees. None: never read.

    Sixteen queries, two more where pods have claims, and those of `chains_above`.
    """
    if not Bookmark.objects.knows_all(pool.cluster_id, NODES.name, PODS.name):
        return None
    members = members_of([pool.pk])
    domain = KeyTextTransform(pool.spread_label, "labels") if pool.spread_label else F("name")
    visible = Node.objects.visible_to(user).filter(cluster=pool.cluster_id, pk__in=members).with_gpus()
    columns = ("pk", "uid", "name", "layout", "gpu_product", "domain")
    rows = list(visible.annotate(domain=domain).order_by("name").values(*columns))
    compared = [row["name"] for row in rows[:NODES_AT_MOST]]
    full, other = _heat(pool.cluster_id, compared, now=now)
    samples = FreeGpuSample.objects.filter(pool=pool, hour__gt=now - timedelta(days=DAYS_OF_SAMPLES))
    refused = Pod.objects.visible_to(user).filter(node__in=members, status=NUMA_REFUSAL)
    running = Pod.objects.visible_to(user).filter(node__in=members, phase="Running", deleted_at=None).tenants()
    stranded = samples.aggregate(mean=Avg(F("free") - F("usable")), hours=Count("pk"))
    return PlacementMeasures(
        stranded["mean"],
        stranded["hours"],
        full,
        other,
        _failures(pool, user, visible, {row["uid"]: row["domain"] for row in rows}, now=now),
        _losses(rows, PodsOnNodes.load(pool, user), now=now),
        refused.count(),
        service_level_of_pool(pool, now=now),
        numa_of_nodes(pool.cluster_id, [row["name"] for row in rows], running, now=now),
        len(rows),
        len(compared),
    )


def _heat(cluster_id: int, names: Sequence[str], *, now: datetime) -> tuple[HeatFigures, HeatFigures]:
    """Returns the figures of full and of other nodes. A node-hour of which nothing tells the allocation is in none."""
    since = (now - timedelta(hours=HOURS)).replace(minute=0, second=0, microsecond=0)
    hours = GpuHour.objects.filter(cluster=cluster_id, node_name__in=names, hour__gte=since, gi_id="").order_by()
    works = Q(busy_s__gte=BUSY_S)
    groups: Any = hours.values("node_name", "hour").annotate(
        boards=Count("uuid"), known=Count("allocated_s"), held_s=Sum("allocated_s"),
        working=Count("uuid", filter=works),
        heat=Avg("temperature", filter=works), heat_max=Max("temperature_max", filter=works),
        watts=Avg("power_watts", filter=works), slow=Avg("throttled", filter=works),
    )  # fmt: skip
    found: dict[bool, list[Mapping[str, Any]]] = defaultdict(list)
    for row in groups:
        if row["known"] == row["boards"] and row["working"]:
            found[is_full(row["held_s"], row["boards"])].append(row)
    return _heat_figures(found[True]), _heat_figures(found[False])


def _heat_figures(rows: Sequence[Mapping[str, Any]]) -> HeatFigures:
    def mean(name: str) -> float | None:
        known = [(row[name], row["working"]) for row in rows if row[name] is not None]
        return sum(value * weight for value, weight in known) / sum(weight for _, weight in known) if known else None

    most = max((row["heat_max"] for row in rows if row["heat_max"] is not None), default=None)
    return HeatFigures(len(rows), mean("heat"), most, mean("watts"), mean("slow"))


def _failures(
    pool: Pool, user: User, nodes: Any, domain_of: Mapping[str, str | None], *, now: datetime
) -> FailureFigures:
    """Counts failures of these nodes, and of nodes that left the pool: a failed node is often replaced."""
    watched = max(1, math.ceil((now - pool.cluster.added_at) / timedelta(days=1)))
    days = min(DAYS_OF_FAILURES, settings.KEEP_HISTORY_DAYS, watched)
    gone = GoneNode.objects.visible_to(user).filter(pools=pool)
    of_pool = ~Q(node_uid="") & (Q(node_uid__in=nodes.order_by().values("uid")) | Q(node_uid__in=gone.values("uid")))
    events = DomainEvent.objects.visible_to(user).filter(
        of_pool, cluster=pool.cluster_id, kind=OPENED, severity=Severity.CRITICAL, at__gt=now - timedelta(days=days)
    )
    newest = list(events.order_by("-pk").values_list("at", "node_uid")[: FAILURES_AT_MOST + 1])
    failures: list[tuple[datetime, set[str]]] = []
    for at, uid in sorted(newest[:FAILURES_AT_MOST]):
        if failures and at - failures[-1][0] <= TOGETHER:
            failures[-1] = at, failures[-1][1] | {uid}
        else:
            failures.append((at, {uid}))
    several = [[domain_of.get(uid) for uid in uids] for _, uids in failures if len(uids) > 1]
    together = sum(max(Counter(filter(None, domains)).values(), default=0) > 1 for domains in several)
    unknown = sum(not all(domains) and len({*filter(None, domains)}) == sum(map(bool, domains)) for domains in several)
    has_label = bool(pool.spread_label)
    return FailureFigures(
        len(failures),
        together if has_label else None,
        len(several) - together - unknown if has_label else len(several),
        unknown if has_label else 0,
        max((len(uids) for _, uids in failures), default=0),
        days,
        min(24 * days, (now - pool.cluster.added_at) // timedelta(hours=1)),
        len(newest) > FAILURES_AT_MOST,
    )


@dataclass
class _JobLoss:
    gpu_hours: float = 0.0
    loading_gpu_hours: float = 0.0
    nodes: set[int] = field(default_factory=set)


def _losses(rows: Sequence[Mapping[str, Any]], pods: PodsOnNodes, *, now: datetime) -> list[NodeLoss]:
    jobs: dict[str, _JobLoss] = defaultdict(_JobLoss)
    lost, waits = defaultdict[int, float](float), defaultdict[int, float](float)  # by node
    workloads: dict[int, set[str]] = defaultdict(set)
    for row in rows:
        layout = Layout.read(row["layout"])
        for pod in pods.by_node.get(row["pk"], ()):
            if not pod["is_tenant"]:
                continue
            gpus = fraction_of(pod["resources"], layout, product=row["gpu_product"]).gpus
            if not gpus and not pod["claims"]:
                continue
            its = pods.movable(pod, gpus, now=now)
            owner = its.owner if pod["owner_name"] else its.name
            workloads[row["pk"]].add(owner)
            if its.is_job:
                job = jobs[owner]
                job.gpu_hours += its.gpu_hours
                job.loading_gpu_hours += its.loading_gpu_hours
                job.nodes.add(row["pk"])
            else:
                waits[row["pk"]] += its.loading_gpu_hours
    for job in jobs.values():
        for key in job.nodes:
            lost[key] += job.gpu_hours
            waits[key] += job.loading_gpu_hours
    found = [
        NodeLoss(key, row["name"], len(workloads[key]), lost[key], waits[key])
        for row in rows
        if (key := row["pk"]) in workloads
    ]
    return sorted(found, key=lambda loss: (-loss.total, loss.name))
