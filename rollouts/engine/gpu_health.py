"""The evidence of the gates on findings and telemetry: findings of changed nodes and of their unchanged peers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from django.db.models import Max, Min, Q

from fleet.history.lines import RESET
from fleet.models import Node, NodeEvent
from health.evaluation.overdue_clusters import last_evaluation
from health.lifecycle import FindingState
from health.models import Finding
from health.rules.gpus.xid import LastXid
from health.rules.xid_of_unknown_gpu import XidOfUnknownGpu
from health.sources.cluster_telemetry import telemetry_of_clusters
from health.sources.snapshots import SnapshotsUnavailable
from rollouts.gates.base import (
    FEWEST_PEERS,
    FindingEvidence,
    GpuTelemetry,
    HealthEvidence,
)
from rollouts.gates.earlier_findings import EarlierFinding, EarlierFindings
from rollouts.lifecycle import TargetState
from rollouts.models import Plan, Stage
from rollouts.queries.gpu_telemetry import metrics_of, reads_health, telemetry_of_nodes

ByUid = Mapping[str, tuple[FindingEvidence, ...]]
OF_XIDS = (LastXid.key, XidOfUnknownGpu.key)
RESTARTS = (RESET, "reload")  # kinds of `NodeEvent`
PAST = timedelta(days=14)  # time of earlier findings, without the change
COHORT = ("gpu_product", "kernel", "os_image")  # columns of a node


@dataclass(frozen=True)
class PlanHealth:
    evidence: HealthEvidence | None = None  # None: no gate asks
    findings: ByUid = field(default_factory=dict)
    telemetry: Mapping[str, GpuTelemetry] = field(default_factory=dict)  # by UID


def read_plan_health(plan: Plan, stages: Sequence[Stage], nodes: Mapping[str, Node], *, now: datetime) -> PlanHealth:
    """Returns the health of changed nodes. None unless a gate asks.

    Six queries and three Redis requests, and two queries more once a changed node has a finding.

    `nodes` are those of the plan by UID.
    """
    gates = [gate for stage in stages if not stage.is_rollback for gate in stage.gates if reads_health(gate)]
    asking = [stage for stage in stages if any(map(reads_health, stage.gates))]
    changed = {
        target.node_uid: target.state_since
        for stage in asking
        for target in stage.targets.all()
        if target.state == TargetState.CHANGED and target.node_uid in nodes
    }
    if not changed:
        return PlanHealth()
    first = min(changed.values())
    metrics = metrics_of(gates)
    of_cluster = telemetry_of_clusters([plan.cluster_id], metrics, now=now)[plan.cluster_id]
    telemetry = telemetry_of_nodes(of_cluster, [nodes[uid] for uid in changed], metrics, since=changed, now=now)
    peers = unchanged_peers(plan, stages, [nodes[uid] for uid in changed], first)
    found = findings_of(plan.cluster_id, Q(node__uid__in=list(changed)) | Q(since__gte=first))
    has_findings = any(found.get(uid) for uid in changed)
    restarts = _restarts(plan.cluster_id, changed)
    return PlanHealth(
        HealthEvidence(
            evaluated_at=_evaluated_at(plan.cluster_id),
            has_source=telemetry.has_source,
            trouble=telemetry.trouble,
            peers={
                name: tuple(one for one in found.get(uid, ()) if one.since >= first)
                for uid, name in peers.names.items()
            },
            alike=peers.alike,
            past=past_findings(plan.cluster_id, [*peers.names, *changed], before=first) if has_findings else None,
        ),
        findings={uid: found.get(uid, ()) for uid in changed},
        telemetry={uid: replace(each, restarted_at=restarts.get(uid)) for uid, each in telemetry.by_node.items()},
    )


def findings_of(cluster_id: int, about: Q) -> dict[str, tuple[FindingEvidence, ...]]:
    """Returns unresolved findings by node UID, also muted ones and those in shadow mode. One query."""
    rows = Finding.objects.unresolved().filter(about, cluster=cluster_id, node__isnull=False).worst_first()
    found: dict[str, list[FindingEvidence]] = defaultdict(list)
    for row in rows.select_related("node"):
        found[row.node.uid if row.node else ""].append(finding_evidence(row))
    return {uid: tuple(those) for uid, those in found.items()}


def finding_evidence(row: Finding) -> FindingEvidence:
    # A GPU has a finding for its worst Xid alone: another number is another fault.
    xid = f" {row.facts.get('xid')}" if row.rule in OF_XIDS else ""
    return FindingEvidence(
        key=f"{row.rule} {row.identity}{xid}",
        rule=row.rule,
        severity=row.severity,
        title=row.title,
        since=row.since,
        is_open=row.state != FindingState.CONFIRMING,
        is_shadow=row.is_shadow,
    )


def past_findings(cluster_id: int, uids: Sequence[str], *, before: datetime) -> EarlierFindings:
    """Returns the findings that opened on nodes in the days before, the first of each kind and node. Two queries.

    Time in which nobody saw a node counts as time without findings. So a gate calls too few findings usual, never more.
    """
    begins = before - PAST
    nodes = Node.objects.filter(cluster=cluster_id, uid__in=uids, created_at__lt=before).order_by()
    opened = Finding.objects.notified().filter(
        cluster=cluster_id, node__uid__in=uids, opened_at__gte=begins, opened_at__lt=before
    )
    firsts = opened.order_by().values("node__name", "rule", "severity").annotate(first=Min("opened_at"))
    return EarlierFindings(
        {name: max(begins, created_at) for name, created_at in nodes.values_list("name", "created_at")},
        before,
        tuple(EarlierFinding(*row) for row in firsts.values_list("node__name", "rule", "severity", "first")),
    )


@dataclass(frozen=True)
class Peers:
    """Unchanged nodes to compare changed ones with."""

    names: Mapping[str, str]  # by UID
    alike: str  # property that a peer shares with a changed node


def unchanged_peers(plan: Plan, stages: Iterable[Stage], changed: Iterable[Node], first: datetime) -> Peers:
    """Returns the nodes with another driver, from before the first change. One query.

    They are of the changed nodes' cohorts. Where these are too few for a comparison, nodes with the same GPUs count.
    """
    begun = {target.node_uid for stage in stages for target in stage.targets.all() if target.state != TargetState.HELD}
    cohorts = {tuple(getattr(node, column) for column in COHORT) for node in changed}
    rows = Node.objects.filter(cluster=plan.cluster_id, gpu_product__in={product for product, *_ in cohorts})
    unchanged = rows.filter(created_at__lt=first).exclude(driver_version=plan.to_version).order_by()
    same_gpus, same_cohort = {}, {}
    for uid, name, *cohort in unchanged.values_list("uid", "name", *COHORT):
        if uid not in begun:
            same_gpus[uid] = name
            if tuple(cohort) in cohorts:
                same_cohort[uid] = name
    if len(same_cohort) >= FEWEST_PEERS:
        return Peers(same_cohort, "the same GPU, kernel and OS image")
    return Peers(same_gpus, "the same GPU")


def _restarts(cluster_id: int, changed: Mapping[str, datetime]) -> dict[str, datetime]:
    """Returns when the GPU counters of each node last restarted since its change."""
    events = NodeEvent.objects.filter(
        cluster=cluster_id, node_uid__in=list(changed), kind__in=RESTARTS, at__gt=min(changed.values())
    )
    newest = events.order_by().values("node_uid").annotate(newest=Max("at")).values_list("node_uid", "newest")
    return {uid: at for uid, at in newest if at > changed[uid]}


def _evaluated_at(cluster_id: int) -> datetime | None:
    try:
        return last_evaluation(cluster_id)
    except SnapshotsUnavailable:  # the gate waits, and the telemetry names the reason
        return None
