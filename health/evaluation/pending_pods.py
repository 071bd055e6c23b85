"""Workloads whose GPU pods wait for a node or start for long, with the reason of their oldest pod."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from django.db.models import Count, F, Min, Q, Sum
from django.db.models.fields.json import KeyTextTransform

from fleet.gpu_pods import top_owners
from fleet.models import Cluster, Pod, Pool
from fleet.pod_reasons import PodReason, reasons_of
from health.evaluation.late_pods import UNSERVED
from health.evaluation.turns import is_turn_of
from health.models import Finding, PoolLimits
from health.rules.base import WaitingWorkload
from health.rules.limits import strictest
from health.rules.pods_not_starting import PodsNotStarting
from health.rules.pods_pending_long import MINUTES, PodsPendingLong
from health.subjects import LONGEST
from wording.reports import LONGEST_SUMMARY

EVERY = timedelta(minutes=2)  # a reason compares the pod with every node of its cluster
WORKLOADS_AT_MOST = 200  # that wait for the longest time
LABELS_AT_MOST = 12  # of node selectors that tell pools apart; others are ignored
OWNER = ("namespace", "owner_kind", "owner_name", "owner_uid")


def is_due(cluster: Cluster, *, now: datetime) -> bool:
    """Returns whether this evaluation covers pending pods."""
    return is_turn_of(PodsPendingLong.key, cluster, every=EVERY, now=now)


def waiting_workloads(
    cluster: Cluster, rule: PodsPendingLong, *, now: datetime
) -> Iterator[tuple[PodsPendingLong, WaitingWorkload]]:
    """Yields each workload with the rule as its pools set it. Two queries; with late pods ten more, and their reasons.

    Pods without an owner count together, by namespace. Pods on a node that has a finding of its own about them are
    left out.
    """
    limits = _limits_by_pool(cluster)
    shortest = min([*MINUTES.values(), rule.limits.warn, *(row.warn for rows in limits.values() for row in rows)])
    groups = _groups(cluster, since=now - timedelta(minutes=shortest))
    if not groups:
        return
    pods = {pod.pk: pod for pod in Pod.objects.filter(pk__in=[group.pod for group in groups]).select_related("node")}
    groups = [group for group in groups if group.pod in pods]
    owners = top_owners(list(pods.values()))
    pools = pools_of(cluster, list(pods.values()))
    classes = dict(Pool.objects.filter(cluster=cluster).values_list("pk", "workload_class"))
    reasons = reasons_of(list(pods.values()), now=now)
    for name, those in _by_owner(groups, pods, owners).items():
        pod = pods[those[0].pod]
        reason = reasons.get(pod.uid)
        if reason is not None and reason.key in UNSERVED:  # the rule claims-waiting covers it
            continue
        its = [row.limits for pool in pools[pod.pk] for row in limits.get(pool, ())]
        variant = replace(rule, limits=strictest(its)) if its else rule
        found = frozenset(classes[pool] for pool in pools[pod.pk] if pool in classes)
        yield variant, _workload(cluster, name, owners[pod.pk][1], pod, those, reason, found, now=now)


@dataclass(frozen=True)
class _LateGroup:
    """Late pods of one owner."""

    pod: int  # key of its first pod, preferably one without a node
    since: datetime
    pods: int
    gpus: int


def _groups(cluster: Cluster, *, since: datetime) -> list[_LateGroup]:
    """Returns groups of late pods by direct owner, the oldest first. One query."""
    told = Finding.objects.unresolved().filter(cluster=cluster, rule=PodsNotStarting.key, node__isnull=False)
    starting = Q(started_at__lt=since, waiting_reason="") & ~Q(node__in=told.values("node"))
    late = Q(node_name="", created_at__lt=since) | (~Q(node_name="") & starting)
    waiting = Pod.objects.tenants().filter(late, cluster=cluster, phase="Pending", deleted_at=None).order_by()
    rows = (
        waiting.values(*OWNER)
        .annotate(
            unplaced=Min("pk", filter=Q(node_name="")),
            first=Min("pk"),
            since=Min("created_at", filter=Q(node_name="")),
            started=Min("started_at"),
            pods=Count("pk"),
            whole=Sum("gpus"),
        )
        .order_by(F("since").asc(nulls_last=True), "started", "first")
    )
    return [
        _LateGroup(row["unplaced"] or row["first"], row["since"] or row["started"], row["pods"], row["whole"])
        for row in rows[:WORKLOADS_AT_MOST]
    ]


def _by_owner(
    groups: Sequence[_LateGroup], pods: Mapping[int, Pod], owners: Mapping[int, tuple[str, str]]
) -> dict[str, list[_LateGroup]]:
    """Groups by topmost owner: the ReplicaSets of a Deployment wait together."""
    found: dict[str, list[_LateGroup]] = defaultdict(list)
    for group in groups:
        (kind, name), namespace = owners[group.pod], pods[group.pod].namespace
        found[f"{kind} {namespace}/{name}" if name else f"namespace {namespace} (no owner)"].append(group)
    return found


def _workload(
    cluster: Cluster,
    name: str,
    owner: str,
    pod: Pod,
    groups: Collection[_LateGroup],
    reason: PodReason | None,
    classes: frozenset[str],
    *,
    now: datetime,
) -> WaitingWorkload:
    since = min(group.since for group in groups)
    return WaitingWorkload(
        name=name[:LONGEST],
        cluster=cluster.name,
        namespace=pod.namespace,
        owner=owner,
        pods=sum(group.pods for group in groups),
        gpus=sum(group.gpus for group in groups),
        since=since,
        longest=now - since,
        classes=classes,
        reason=_sentence(reason) if reason else "Its node reports no reason. A large image may still be pulled.",
        decided_by=f"{reason.key} {reason.decided_by}" if reason else "",
        is_wrong=reason is None or reason.is_wrong,
        steps=reason.steps if reason else (),
        evidence=reason.evidence if reason else (),
    )


def _sentence(reason: PodReason) -> str:
    return reason.sentence if len(reason.sentence) <= LONGEST_SUMMARY else reason.title or reason.sentence


def _limits_by_pool(cluster: Cluster) -> Mapping[int, Sequence[PoolLimits]]:
    found: dict[int, list[PoolLimits]] = defaultdict(list)
    for row in PoolLimits.objects.filter(pool__cluster=cluster, rule=PodsPendingLong.key).order_by("pk"):
        found[row.pool_id].append(row)
    return found


def pools_of(cluster: Cluster, pods: Sequence[Pod]) -> Mapping[int, Collection[int]]:
    """Returns by pod the pools of its node, or those with nodes that its node selector allows. Two queries at most."""
    selectors = {pod.pk: pod.placement.get("node_selector", {}) for pod in pods if not pod.node_id}
    keys = sorted({key for selector in selectors.values() for key in selector})[:LABELS_AT_MOST]
    names = {f"label_{number}": key for number, key in enumerate(keys)}
    members = Pool.nodes.through.objects.order_by()
    labels = {name: KeyTextTransform(key, "node__labels") for name, key in names.items()}
    rows = list(
        members.filter(pool__cluster=cluster).annotate(**labels).values_list("pool_id", *names).distinct()
        if selectors
        else ()
    )
    found: dict[int, set[int]] = {pod.pk: set() for pod in pods}
    for pod, selector in selectors.items():
        wanted = [(place, selector[key]) for place, key in enumerate(keys, 1) if key in selector]
        found[pod] = {row[0] for row in rows if all(row[place] == value for place, value in wanted)}
    on_nodes: dict[int, set[int]] = defaultdict(set)
    for node, pool in members.filter(node__in=[pod.node_id for pod in pods if pod.node_id]).values_list(
        "node_id", "pool_id"
    ):
        on_nodes[node].add(pool)
    return found | {pod.pk: on_nodes[pod.node_id] for pod in pods if pod.node_id}
