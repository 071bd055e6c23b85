"""Reads the record of a plan from the rows of plans, nodes, pods and findings."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db.models import Min, Q
from django.db.models.fields.json import KeyTextTransform

from fleet.history.facts import NodeChange, changes_in
from fleet.models import DomainEvent, Node, NodeEvent, PodPlacement
from gpu.resources import Layout
from health.backtest.backtest import UNSEEING
from health.models import Finding
from rollouts.backtest.record import PastFinding, PastMove, PlanRecord, StageSpan, TargetRecord, by_kind
from rollouts.engine.baseline import read_baseline
from rollouts.engine.gpu_health import finding_evidence, past_findings
from rollouts.engine.looks import NODE_LOOKS, STAGE_LOOKS, read_seen
from rollouts.gates.base import Baseline, ServiceLevel
from rollouts.gates.slo import SLOS
from rollouts.lifecycle import PlanState, StageState, TargetState
from rollouts.models import Cordon, GateLook, Plan, PlanEvent, ServiceLevelSample, Target, TestJob
from rollouts.queries.test_results import baselines_of

LASTING = ("is_ready", "upgrade_state", "is_held")  # columns that no baseline has
MOST_PLACEMENTS = 20_000
MOST_LOOKS = 10_000
MOST_SAMPLES = 3_000  # one day of a stage, two a minute


def read_record(plan: Plan) -> PlanRecord:
    """Reads the record until the last halt, else until the plan's last move. At most 20 queries."""
    halted_at = _halted_at(plan)
    end = halted_at or plan.state_since
    spans = _spans(plan, end)
    if not spans:
        return PlanRecord(plan, end, halted_at is not None, spans)
    begin = min(span.begin for span in spans)
    rows = list(Target.objects.filter(stage__in=[span.stage for span in spans]))
    uids = [row.node_uid for row in rows]
    nodes = {node.uid: node for node in Node.objects.filter(cluster=plan.cluster_id, uid__in=uids)}
    jobs = _jobs(plan, end)
    findings, gaps = _findings(plan, begin, end)
    placements, moves, changes = (
        _placements(plan, uids, begin, end),
        _target_moves(rows, end),
        _changes(plan, uids, begin, end),
    )
    lasting, cordons = _lasting(plan, nodes, end), _cordons(plan)
    looks, others = _looks(spans, end), _others(plan, nodes.values(), begin)
    targets: dict[int, list[TargetRecord]] = defaultdict(list)
    for row in rows:
        uid, node, base = row.node_uid, nodes.get(row.node_uid), read_baseline(row.baseline)
        layout = Layout.read(node.layout if node else "")
        targets[row.stage_id].append(
            TargetRecord(
                row,
                base,
                moves.get(row.pk) or [PastMove(plan.sealed_at or begin, TargetState.HELD, "")],
                gpus=(node.physical_gpus if node else None) or _whole_gpus(base, layout),
                layout=layout,
                changes=changes.get(uid, {}),
                lasting=lasting.get(uid, {}) | _columns_of(base),
                findings=findings.get(uid, ()),
                jobs=jobs.get(uid, ()),
                cordons=cordons.get(uid, ()),
                placements=None if placements is None else placements.get(uid, ()),
                looks=[(look.at, read_seen(look, NODE_LOOKS)) for look in looks.get((row.stage_id, uid), ())],
            )
        )
    return PlanRecord(
        plan,
        end,
        halted_at is not None,
        spans,
        targets,
        findings,
        others=others,
        past=past_findings(plan.cluster_id, list(others), before=begin),
        gaps=gaps,
        baselines=baselines_of(plan, [job for its in jobs.values() for job in its]),
        samples={(span.stage.pk, key): its for span in spans for key, its in _samples(span).items()},
        looks={
            span.stage.pk: [(look.at, read_seen(look, STAGE_LOOKS)) for look in looks.get((span.stage.pk, ""), ())]
            for span in spans
        },
        windows=ServiceLevelSample.windows([span.stage.pk for span in spans if _asks_services(span)]),
    )


def _halted_at(plan: Plan) -> datetime | None:
    halts = PlanEvent.objects.filter(plan=plan, what="plan", to=PlanState.HALTED).order_by("-pk")
    return halts.values_list("at", flat=True).first()


def _spans(plan: Plan, end: datetime) -> list[StageSpan]:
    """Returns the stages with a release before the end. A stage counts until the next one releases nodes."""
    began: dict[int, datetime] = {}
    passed: dict[int, datetime] = {}
    events = PlanEvent.objects.filter(plan=plan, what="stage", at__lte=end).order_by("pk")
    for stage_id, to, at in events.values_list("stage_id", "to", "at"):
        if to == StageState.PROMOTING:
            began.setdefault(stage_id, at)
        elif to == StageState.PASSED:
            passed[stage_id] = at
    stages = [stage for stage in plan.stages.forward().prefetch_related("overrides") if stage.pk in began]
    ends = (*(began[stage.pk] for stage in stages[1:]), end)
    return [StageSpan(stage, began[stage.pk], ends[place], passed.get(stage.pk)) for place, stage in enumerate(stages)]


def _target_moves(rows: Iterable[Target], end: datetime) -> dict[int, list[PastMove]]:
    found: dict[int, list[PastMove]] = defaultdict(list)
    stages = {row.stage_id for row in rows}
    events = PlanEvent.objects.filter(stage__in=stages, what="target", at__lte=end).order_by("pk")
    for target_id, at, to, reason in events.values_list("target_id", "at", "to", "reason"):
        found[target_id].append(PastMove(at, TargetState(to), reason))
    return found


def _changes(
    plan: Plan, uids: Collection[str], begin: datetime, end: datetime
) -> dict[str, dict[str, list[NodeChange]]]:
    """Returns the changes of each node by column."""
    events = NodeEvent.objects.filter(cluster=plan.cluster_id, node_uid__in=uids, at__gte=begin, at__lte=end)
    rows: dict[str, list[tuple[datetime, Any]]] = defaultdict(list)
    for uid, at, detail in events.order_by("at", "pk").values_list("node_uid", "at", "detail"):
        rows[uid].append((at, detail))
    found: dict[str, dict[str, list[NodeChange]]] = {}
    for uid, its in rows.items():
        by_column = found.setdefault(uid, {})
        for change in changes_in(its):
            by_column.setdefault(change.column, []).append(change)
    return found


def _lasting(plan: Plan, nodes: Mapping[str, Node], end: datetime) -> dict[str, dict[str, Any]]:
    """Returns the values at the end: those before the first later change, else of the row."""
    found = {uid: {column: getattr(node, column) for column in LASTING} for uid, node in nodes.items()}
    later = NodeEvent.objects.filter(
        cluster=plan.cluster_id, node_uid__in=list(nodes), at__gt=end, detail__column__in=LASTING
    )
    firsts = later.annotate(column=KeyTextTransform("column", "detail")).order_by().values("node_uid", "column")
    keys = firsts.annotate(first=Min("pk")).values("first")
    for uid, detail in NodeEvent.objects.filter(pk__in=keys).order_by().values_list("node_uid", "detail"):
        found[uid][detail["column"]] = detail.get("was")
    return found


def _columns_of(base: Baseline | None) -> dict[str, Any]:
    if base is None:
        return {}
    columns = {
        "driver_version": base.driver_version,
        "mig_config_state": base.mig_config_state,
        "is_unschedulable": base.is_unschedulable,
        "kernel": base.traits.get("kernel"),
        "os_image": base.traits.get("OS image"),
    }
    return {column: value for column, value in columns.items() if value is not None}


def _whole_gpus(base: Baseline | None, layout: Layout) -> int:
    amounts = (base.allocatable if base else None) or {}
    return sum(amounts[name] for name in by_kind(amounts, layout)[0])


def _findings(
    plan: Plan, begin: datetime, end: datetime
) -> tuple[dict[str, list[PastFinding]], list[tuple[datetime, datetime]]]:
    """Returns the findings of each node of the cluster, and the times without observation."""
    worse: dict[int, list[tuple[datetime, str]]] = defaultdict(list)
    events = DomainEvent.objects.filter(cluster=plan.cluster_id, kind="finding.worse", at__gt=begin).order_by("pk")
    for at, facts in events.values_list("at", "facts"):
        worse[facts["finding"]].append((at, facts["was"]))
    of_that_time = Q(resolved_at=None) | Q(resolved_at__gt=begin)
    seen = Q(since__lte=end) | Q(first_opened_at__lte=end)
    about = Q(node__isnull=False) | Q(rule__in=UNSEEING)
    rows = Finding.objects.filter(of_that_time, seen, about, cluster=plan.cluster_id).select_related("node")
    found: dict[str, list[PastFinding]] = defaultdict(list)
    gaps = []
    for row in rows.order_by("pk"):
        if row.node is None:
            gaps.append((row.since, row.resolved_at or end))
            continue
        again = row.first_opened_at if row.times > 1 else None
        its = PastFinding(finding_evidence(row), row.opened_at, again, row.resolved_at, worse.get(row.pk, ()))
        found[row.node.uid].append(its)
    return found, gaps


def _jobs(plan: Plan, end: datetime) -> dict[str, list[TestJob]]:
    found: dict[str, list[TestJob]] = defaultdict(list)
    for row in TestJob.objects.filter(plan=plan, intended_at__lte=end).order_by("pk"):
        found[row.node_uid].append(row)
    return found


def _cordons(plan: Plan) -> dict[str, list[Cordon]]:
    found: dict[str, list[Cordon]] = defaultdict(list)
    for row in Cordon.objects.filter(plan=plan):
        found[row.node_uid].append(row)
    return found


def _placements(
    plan: Plan, uids: Collection[str], begin: datetime, end: datetime
) -> dict[str, list[PodPlacement]] | None:
    """Returns the pods of each node in that time; None if there were too many to read."""
    there = Q(until=None) | Q(until__gt=begin)
    rows = PodPlacement.objects.filter(there, cluster=plan.cluster_id, node_uid__in=uids, since__lte=end)
    read = list(rows.order_by()[: MOST_PLACEMENTS + 1])
    if len(read) > MOST_PLACEMENTS:
        return None
    found: dict[str, list[PodPlacement]] = defaultdict(list)
    for row in read:
        found[row.node_uid].append(row)
    return found


def _others(plan: Plan, nodes: Iterable[Node], begin: datetime) -> dict[str, tuple[str, bool]]:
    """Returns the nodes with the same GPUs, and whether each has another driver now."""
    products = {node.gpu_product for node in nodes}
    rows = Node.objects.filter(cluster=plan.cluster_id, gpu_product__in=products, created_at__lt=begin).order_by()
    return {
        uid: (name, version != plan.to_version)
        for uid, name, version in rows.values_list("uid", "name", "driver_version")
    }


def _looks(spans: Sequence[StageSpan], end: datetime) -> dict[tuple[int, str], list[GateLook]]:
    """Returns the looks at each node of each stage, and at the stage; none if there were too many to read."""
    rows = GateLook.objects.filter(stage__in=[span.stage for span in spans], at__lte=end).order_by("at", "pk")
    read = list(rows[: MOST_LOOKS + 1])
    found: dict[tuple[int, str], list[GateLook]] = defaultdict(list)
    for row in read if len(read) <= MOST_LOOKS else ():
        found[row.stage_id, row.node_uid].append(row)
    return found


def _asks_services(span: StageSpan) -> bool:
    return any(gate.key in span.stage.gate_options for gate in SLOS)


def _samples(span: StageSpan) -> Mapping[str, Sequence[ServiceLevel]]:
    """Returns the measurements by gate, the oldest first. One query; none unless a gate asked."""
    if not _asks_services(span):
        return {}
    found: dict[str, list[ServiceLevel]] = defaultdict(list)
    rows = ServiceLevelSample.objects.filter(stage=span.stage, at__gte=span.begin, at__lte=span.end)
    for row in reversed(rows.order_by("-at")[:MOST_SAMPLES]):
        found[row.gate].append(row.evidence)
    return found
