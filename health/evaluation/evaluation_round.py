"""Turns rule results into findings: a finding opens once its fault has persisted, and is resolved when it ends.

Unobserved parts are not evaluated: while a cluster is not observed, its findings stay as they are.
"""

from collections.abc import Callable, Collection, Iterator
from dataclasses import asdict
from datetime import datetime
from typing import Any

from django.db.models import Q

from edges.slices import Slice, slices
from fleet.drivers.cluster_drivers import operator_trouble
from fleet.freshness.observation_state import ClusterObservation, ObservationState, observation_of
from fleet.freshness.threads import threads
from fleet.models import Bookmark, Cluster, ExporterRound, Node, Observer
from health.evaluation import pending_pods
from health.evaluation.driver_reports import bad_combinations
from health.evaluation.finding_counts import announce_findings, count_on_nodes
from health.evaluation.finding_events import save_events
from health.evaluation.finding_openings import (
    TEXTS,
    Openings,
    correlate,
    lock_findings,
    must_notify_again,
    resolve,
    unmute,
)
from health.evaluation.finding_sources import SOURCES, FindingSource
from health.evaluation.gpu_evaluation import GpuEvaluation, evaluate_gpus
from health.evaluation.idle_gpus import is_due
from health.evaluation.late_pods import claims_waiting
from health.evaluation.limits_in_force import LimitsInForce
from health.evaluation.node_evaluation import evaluate_nodes
from health.evaluation.placements import split_gangs, taint_counts
from health.evaluation.rejected_owners import rejected_owners
from health.evaluation.runs import record_round
from health.evaluation.shadow_transitions import move_findings
from health.evaluation.signals import Signal, Subject
from health.evaluation.stuck_drivers import driver_conflict, stuck_drivers, stuck_policy
from health.evaluation.turns import is_turn_of
from health.evaluation.upgrade_queue import blocker_of_queue, queued_for_upgrade, upgrades_are_still
from health.lifecycle import FindingState
from health.models import Finding, RuleShadow, SourceState, TelemetrySource
from health.models.finding import FindingQuerySet
from health.rules import RULES
from health.rules.base import (
    NODE,
    NODES,
    OWNER,
    PODS,
    WAITING,
    Blocker,
    ClusterFacts,
    Problem,
    RejectedOwner,
    Rule,
    Severity,
)
from health.rules.claims_waiting import ClaimsWaiting
from health.rules.cluster_policy_stuck import ClusterPolicyStuck
from health.rules.driver_conflict import DriversConflict
from health.rules.driver_object_stuck import DriverObjectStuck
from health.rules.exporter_silent import ExporterSilent
from health.rules.gang_across_domains import GangAcrossDomains
from health.rules.gpu_nodes_untainted import GpuNodesUntainted
from health.rules.gpus import GPU_RULES
from health.rules.idle_gpus import IdleGpus
from health.rules.pods_pending_long import PodsPendingLong
from health.rules.series_explosion import SeriesExplosion
from health.rules.telemetry_silent import TelemetrySilent
from health.rules.unsupported_combination import UnsupportedCombination
from health.rules.xid_of_unknown_gpu import XidOfUnknownGpu
from health.sources.silence import is_silence_known, why_silent
from health.telemetry.base import Exploding

OF_SOURCE = ("state", "state_since", "message", "exploding", "answered_at", "exported")
GPU_KEYS = frozenset(rule.key for rule in GPU_RULES)
# Findings about a removed node always end.
OF_GONE_NODES = Q(node=None, rule__in=GPU_KEYS.union(rule.key for rule in RULES if rule.subject == NODE))
FINGERPRINT_CHARS = 1200
WRITTEN_AGAIN = (
    "severity", *TEXTS, "updated_at", "feedback", "feedback_by",
    "feedback_reason", "worse_since", "as_bad_since", "gpu_uuid", "subject",
)  # fmt: skip


def evaluate_cluster(cluster: Cluster, *, now: datetime) -> int:
    """Evaluates a cluster by its rows, and returns how many findings opened or were resolved.

    54 queries at most, and those of the changes.
    """
    observer = Observer.objects.get(cluster=cluster)
    marks = list(Bookmark.objects.filter(cluster=cluster))
    live = {row.kind for row in marks if row.is_fresh(now=now)}
    observation = observation_of(marks, observer, added_at=cluster.added_at, now=now)
    source = TelemetrySource.objects.filter(cluster=cluster, is_on=True).only(*OF_SOURCE).first()
    asked = ExporterRound.objects.filter(cluster=cluster).first()
    limits, gpus = LimitsInForce(), GpuEvaluation()
    if live.issuperset((NODES,)):
        limits = LimitsInForce.of(cluster, (*GPU_RULES, *RULES))
        gpus = evaluate_gpus(cluster, limits, now=now)
    not_evaluated = {SeriesExplosion.key} if source and source.state != SourceState.ANSWERING else set()
    if not is_silence_known(source, asked):
        not_evaluated.add(TelemetrySilent.key)
    if gpus.reporting is None:
        not_evaluated |= {ExporterSilent.key, XidOfUnknownGpu.key}
    if gpus.reporting is None or not is_due(cluster, now=now):
        not_evaluated.add(IdleGpus.key)
    if PODS not in live or not pending_pods.is_due(cluster, now=now):
        not_evaluated.add(PodsPendingLong.key)
    rules = [rule for rule in RULES if live.issuperset(rule.reads) and rule.key not in not_evaluated]
    of_nodes = [rule for rule in rules if rule.subject == NODE]
    of_owners = [rule for rule in rules if rule.subject == OWNER]
    of_cluster = [rule for rule in rules if rule.subject not in (NODE, OWNER, WAITING)]
    silent = why_silent(source, asked, now=now)
    sources = [
        each
        for each in SOURCES.values()
        if live.issuperset(each.reads)
        and (each.every is None or is_turn_of(each.key, cluster, every=each.every, now=now))
    ]
    signals = [
        *_cluster_signals(cluster, observer, marks, observation, source, silent, of_cluster, now=now),
        *_source_signals(cluster, sources, now=now),
    ]
    signals += gpus.signals
    signals += _owner_signals(cluster, of_owners, now=now)
    signals += _waiting_pod_signals(cluster, rules, now=now)
    if of_nodes:
        signals += evaluate_nodes(cluster, of_nodes, limits, gpus.reporting, now=now)
    evaluated = Q(rule__in={rule.key for rule in rules} | {each.key for each in sources} | gpus.evaluated)
    if live.issuperset((NODES,)):
        evaluated |= OF_GONE_NODES
    told = _write(cluster, signals, evaluated, gpus.can_resolve, now=now)
    told += unmute(cluster, now=now) + correlate(cluster, now=now)
    record_round(cluster, now=now)
    nodes = count_on_nodes(cluster)
    if told or nodes:
        announce_findings(cluster.pk, nodes=nodes, at=now)
    return told


def _owner_signals(cluster: Cluster, rules: Collection[Rule[RejectedOwner]], *, now: datetime) -> Iterator[Signal]:
    for owner in rejected_owners(cluster, now=now) if rules else ():
        for rule in rules:
            if problem := rule.evaluate(owner):
                yield Signal(Subject(owner.name), rule, problem)


def _waiting_pod_signals(cluster: Cluster, rules: Collection[Rule[Any]], *, now: datetime) -> Iterator[Signal]:
    for rule in rules:
        if isinstance(rule, PodsPendingLong):
            for variant, workload in pending_pods.waiting_workloads(cluster, rule, now=now):
                if problem := variant.evaluate(workload):
                    yield Signal(Subject(workload.name), variant, problem)


def _source_signals(cluster: Cluster, sources: Collection[FindingSource], *, now: datetime) -> Iterator[Signal]:
    for source in sources:
        for subject, problem in source.say(cluster, now=now):
            yield Signal(Subject(subject), source, problem)


def _cluster_signals(
    cluster: Cluster,
    observer: Observer,
    marks: Collection[Bookmark],
    observation: ClusterObservation,
    source: TelemetrySource | None,
    silent_reason: str,
    asked: Collection[Rule[ClusterFacts]],
    *,
    now: datetime,
) -> Iterator[Signal]:
    kinds = set(map(type, asked))
    is_unseen = observation.state not in (ObservationState.LIVE, ObservationState.CONNECTING)
    queued = queued_for_upgrade(cluster)
    are_still = bool(queued) and upgrades_are_still(cluster, now=now)
    blocked_by, blocker = blocker_of_queue(cluster) if are_still else ("", Blocker())
    facts = ClusterFacts(
        cluster.name,
        observer.lag_ms,
        observation.behind_since,
        unseen_state=observation.state.value if is_unseen else "",
        unseen_reason=observation.reason,
        unseen_action=observation.action,
        unwatched_action=threads(now=now).action if observation.unwatched_since else "",
        unwatched_since=observation.unwatched_since,
        telemetry_silent_reason=silent_reason,
        exploding=tuple(Exploding(**each) for each in source.exploding) if source else (),
        combinations=bad_combinations(cluster, marks, now=now) if UnsupportedCombination in kinds else (),
        upgrades_queued=queued,
        upgrades_are_still=are_still,
        upgrades_blocker=blocker,
        upgrades_blocked_by=blocked_by,
        operator_trouble=operator_trouble(cluster),
        claims_waiting=claims_waiting(cluster, now=now) if ClaimsWaiting in kinds else (),
        stuck_drivers=stuck_drivers(cluster) if DriverObjectStuck in kinds else (),
        stuck_policy=stuck_policy(cluster) if ClusterPolicyStuck in kinds else None,
        driver_conflict=driver_conflict(cluster) if DriversConflict in kinds else None,
        taints=taint_counts(cluster) if GpuNodesUntainted in kinds else None,
        credentials=tuple(observer.credential_lives),
        evaluated_at=now,
        split_gangs=split_gangs(cluster) if GangAcrossDomains in kinds else (),
    )
    for rule in asked:
        if problem := rule.evaluate(facts):
            yield Signal(Subject(rule.subject), rule, problem)


def _write(
    cluster: Cluster,
    signals: Collection[Signal],
    evaluated: Q,
    can_resolve: Callable[[Finding], bool],
    *,
    now: datetime,
) -> int:
    """Writes findings in batches. If a worker crashes between two, the next evaluation does the rest."""
    unresolved = Finding.objects.unresolved().filter(evaluated, cluster=cluster)
    silent = set(unresolved.order_by().values_list("pk", flat=True))  # of these no signal was met yet
    told = 0
    for some in slices(signals):
        with lock_findings(cluster):
            told += _write_some(cluster, some, unresolved, silent, now=now)
    for over in slices(sorted(silent)):
        with lock_findings(cluster):
            told += _resolve_some(cluster, over, unresolved, can_resolve, now=now)
    return told


def _write_some(
    cluster: Cluster, some: Slice[Signal], unresolved: FindingQuerySet, silent: set[int], *, now: datetime
) -> int:
    shadows, about = RuleShadow.objects.rules(), _about(some.rows)
    openings = Openings.of(cluster, now=now, about=about)
    waiting, told = _waiting(unresolved.filter(about), shadows, openings)
    gone = _removed_nodes(some.rows, {finding.node_id for finding in waiting.values()})
    for signal in some:
        if signal.subject.node_id in gone:
            continue
        known = waiting.pop(signal.key, None) or waiting.pop((signal.rule.key, signal.subject.name), None)
        if known is not None:
            silent.discard(known.pk)
        if known is not None and known.node_id != signal.subject.node_id:  # of a node that had its name, or its board
            told += resolve([known], now=now)
            known = None
        finding = known or _new(cluster, signal, shadows, now=now)
        told += _update(finding, signal, openings, now=now)
    save_events(openings.events)
    return told


def _resolve_some(
    cluster: Cluster,
    over: Slice[int],
    unresolved: FindingQuerySet,
    can_resolve: Callable[[Finding], bool],
    *,
    now: datetime,
) -> int:
    openings = Openings.of(cluster, now=now)
    waiting, told = _waiting(unresolved.filter(pk__in=over.whole()), RuleShadow.objects.rules(), openings)
    ended = [one for one in waiting.values() if one.rule not in GPU_KEYS or can_resolve(one)]
    return told + resolve(ended, now=now)


def _waiting(
    rows: FindingQuerySet, shadows: frozenset[str], openings: Openings
) -> tuple[dict[tuple[str, str], Finding], int]:
    """Returns unresolved findings by rule and identity, and how many entered or left shadow mode."""
    waiting = {(finding.rule, finding.identity): finding for finding in rows.select_related("node")}
    out = [key for key, finding in waiting.items() if finding.is_shadow != (finding.rule in shadows)]
    waiting |= zip(out, move_findings([waiting[key] for key in out], openings) if out else (), strict=True)
    return waiting, len(out)


def _about(signals: Collection[Signal]) -> Q:
    """Returns a filter for the findings of these signals, and other findings of the same subjects."""
    boards = {signal.subject.gpu_uuid for signal in signals} - {""}
    return Q(subject__in={signal.subject.name for signal in signals}) | Q(gpu_uuid__in=boards)


def _removed_nodes(signals: Collection[Signal], known_nodes: Collection[int | None]) -> set[int]:
    """Returns the nodes that have gone since they were evaluated. One query if any signal's node has no finding."""
    about = {signal.subject.node_id for signal in signals}
    unknown = {node_id for node_id in about.difference(known_nodes) if node_id is not None}
    return unknown.difference(Node.objects.filter(pk__in=unknown).values_list("pk", flat=True)) if unknown else unknown


def _new(cluster: Cluster, signal: Signal, shadows: frozenset[str], *, now: datetime) -> Finding:
    return Finding(
        cluster=cluster,
        node_id=signal.subject.node_id,
        subject=signal.subject.name,
        gpu_uuid=signal.subject.gpu_uuid,
        rule=signal.rule.key,
        since=now,
        confirmed_at=now + min(signal.rule.after, signal.after),
        is_shadow=signal.rule.key in shadows,
    )


def _update(finding: Finding, signal: Signal, openings: Openings, *, now: datetime) -> int:
    """Returns 1 if the finding opened now, else 0. Values that only grow are not written."""
    problem = signal.problem
    fingerprint = problem.fingerprint[:FINGERPRINT_CHARS]
    known = problem.severity.value, fingerprint, signal.subject.gpu_uuid, signal.subject.name
    is_too_soon = _is_worse_too_soon(finding, problem, now=now)
    if not is_too_soon and (finding.pk is None or known != _known(finding)):
        is_new = finding.pk is None
        must_notify = not is_new and must_notify_again(finding, problem.severity)
        was = "" if is_new else finding.severity
        if finding.steps != signal.steps:
            finding.feedback = finding.feedback_by = finding.feedback_reason = ""
        if not is_new:
            _remember_since_when(finding, problem.severity, now=now)
        finding.worse_since = None
        finding.severity, finding.fingerprint, finding.gpu_uuid, finding.subject = known
        finding.title, finding.summary = problem.title, problem.summary
        finding.evidence = [asdict(item) for item in signal.evidence]
        finding.causes, finding.steps, finding.facts = list(problem.causes), signal.steps, dict(problem.facts)
        finding.updated_at = now
        finding.save(update_fields=None if is_new else WRITTEN_AGAIN)
        if was not in ("", finding.severity):
            is_worse = Severity(was).is_less_than(problem.severity)
            openings.note(finding, "finding.worse" if is_worse else "finding.better", was=was)
        if must_notify:
            finding.move(FindingState.OPEN, now=now)
            return 1
    _confirm(finding, signal, is_too_soon=is_too_soon)
    if finding.state != FindingState.CONFIRMING or now < finding.confirmed_at:
        return 0
    return 0 if openings.open(finding, signal.subject.node_name).is_shadow else 1


def _known(finding: Finding) -> tuple[str, str, str, str]:
    """Returns the fields that are written when they change."""
    return finding.severity, finding.fingerprint, finding.gpu_uuid, finding.subject


def _remember_since_when(finding: Finding, severity: Severity, *, now: datetime) -> None:
    """Records when the severity rose. A finding that became less severe counts from its beginning."""
    was = Severity(finding.severity)
    if was.is_less_than(severity):
        finding.as_bad_since = finding.worse_since or now
    elif severity.is_less_than(was):
        finding.as_bad_since = None


def _confirm(finding: Finding, signal: Signal, *, is_too_soon: bool) -> None:
    """Opens the finding once the fault has persisted for the rule's time; a severe fault may take less time.

    The limits in force now apply, since they may have changed meanwhile.
    """
    at = finding.since + signal.rule.after
    if not is_too_soon:
        at = min(at, (finding.as_bad_since or finding.since) + signal.after)
    if finding.state == FindingState.CONFIRMING and finding.confirmed_at != at:
        Finding.objects.filter(pk=finding.pk).update(confirmed_at=at)
        finding.confirmed_at = at


def _is_worse_too_soon(finding: Finding, problem: Problem, *, now: datetime) -> bool:
    """Returns whether the fault is worse than the finding states, but has not been for long enough."""
    if finding.pk is None or not problem.worsens_after:
        return False
    if not Severity(finding.severity).is_less_than(problem.severity):
        _worse_since(finding, None)
        return False
    if finding.worse_since is None:
        _worse_since(finding, now)
    return now - (finding.worse_since or now) < problem.worsens_after


def _worse_since(finding: Finding, at: datetime | None) -> None:
    if finding.worse_since != at:
        Finding.objects.filter(pk=finding.pk).update(worse_since=at)
        finding.worse_since = at
