"""Tries a telemetry source before it is saved: a user requests it, a worker runs it, and the result is read here.

A worker runs it because a worker would query the source later: from the same network, with the same secrets and CA.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import structlog
from django.db import transaction
from django.db.models import Exists, OuterRef

from fleet.messages.announce import cluster_group
from fleet.models import Cluster, ExporterRound, LostLease, Node
from fleet.queries import ClusterRow
from health import wake
from health.inbox.telemetry_sources import BadSource, Trial, trial_with, try_source, validated_settings
from health.models import SourceState, TelemetrySource, TelemetryTrial, TrialState
from health.rules.gpus import GPU_RULES
from health.rules.gpus.base import SeesLess
from health.sources.exported_metrics import MISSED, AlikeExporters, Exporting, exporting_of
from health.sources.node_telemetry import source_state
from health.sources.readings import Standing
from health.telemetry.metrics import METRICS
from people.models import AuditEntry, User
from people.rights import Permission, scope_of
from wording.instants import moment
from wording.lists import names
from wording.numbers import count, either

TRIED = ("url", "matchers", "user", "secret_from", "ca_file")
OVER = frozenset({TrialState.ANSWERED, TrialState.TROUBLED, TrialState.LOST})
log = structlog.get_logger(__name__)


class TrialOpen(Exception):
    """Another trial of the cluster is in progress."""

    def __init__(self, trial: TelemetryTrial) -> None:
        super().__init__(f"{trial.asked_by} is testing {trial.url} for {trial.cluster.name}. Wait for the result.")
        self.trial = trial


def ask_trial(cluster: Cluster, *, actor: str, now: datetime, **given: Any) -> TelemetryTrial:
    """Requests a trial by a worker, one at a time for a cluster. The saved source stays unchanged.

    It is recorded as a decision, since it sends a secret of ours to the given address.

    :raises BadSource: naming the field
    :raises TrialOpen: when another trial of the cluster is in progress
    """
    fields = validated_settings({name: given[name] for name in TRIED if name in given})
    with transaction.atomic():
        Cluster.objects.select_for_update(no_key=True).get(pk=cluster.pk)  # two that ask at once
        other = TelemetryTrial.objects.open_at(now).filter(cluster=cluster).select_related("cluster").first()
        if other is not None:
            raise TrialOpen(other)
        trial = TelemetryTrial.objects.create(cluster=cluster, asked_by=actor, asked_at=now, **fields)
        AuditEntry.record(f"cluster:{cluster.pk}", verb="telemetry.try", actor=actor, evidence=fields, now=now)
        wake.wake_telemetry_trial(trial.pk)
    return trial


def run_trial(trial_id: int, *, clock: Callable[[], datetime]) -> None:
    """Queries the source once, in a worker.

    A trial that another worker has begun, or that has expired, is left alone.
    """
    trial = TelemetryTrial.take(trial_id, now=clock())
    if trial is None:
        return
    try:
        said = try_source(trial.cluster, **{name: getattr(trial, name) for name in TRIED})
    except BadSource as refusal:  # here, and not where it was asked for: this worker has other settings
        said = Trial(str(refusal))
    try:
        trial.end(
            now=clock(), trouble=said.trouble, devices=said.devices,
            exported=[metric.key for metric in said.exported], notes=list(said.notes),
            nodes=said.exporting.written() if said.exporting else None,
        )  # fmt: skip
    except LostLease as lost:
        log.warning("a source was tried for too long", reason=str(lost))


def trial_summary(trial: TelemetryTrial, *, now: datetime) -> str:
    match trial.state_at(now):
        case TrialState.WAITING:
            return "No worker has begun the test yet."
        case TrialState.ASKING:
            return "A worker asks it."
        case TrialState.LOST if trial.begun_at is None:
            return "No worker has begun the test. Check whether a worker of the queue “default” runs."
        case TrialState.LOST:
            return "The worker stopped before it reported a result. Start the test again."
    said = trial_with(trial.devices, trial.exported, trial.notes, exporting_by(trial))
    return trial.trouble or said.sentence


def exporting_by(trial: TelemetryTrial) -> Exporting | None:
    """Returns the exported metrics at the time of the trial; None if nobody counted them."""
    return None if trial.nodes is None else Exporting.read(trial.exported, trial.nodes)


SEEING_LESS = tuple(rule for rule in GPU_RULES if isinstance(rule, SeesLess))


@dataclass(frozen=True)
class Age:
    """The age of a source's data. `is_late` means so old or incomplete that missing findings prove nothing."""

    name: str
    at: datetime | None
    is_late: bool
    reason: str = ""
    topic: str = ""  # topic whose heartbeats update the age; blank: none

    @property
    def words(self) -> str:
        return f"{self.name}: {self.reason}" if self.reason else self.name


def ages_of(user: User, lines: Sequence[ClusterRow], *, now: datetime) -> list[Age]:
    """Returns the age of each visible cluster's GPU telemetry, with four queries.

    A user who sees only a part of a cluster gets the age alone, since the source's messages contain addresses.
    """
    observations = [(line.cluster, line.freshness.observation) for line in lines]
    clusters = [line.cluster for line in lines]
    found = [
        Age(f"cluster {one.name}", seen.last_seen_at, not seen.is_live, seen.reason, topic=cluster_group(one.pk))
        for one, seen in observations
    ]
    whole = scope_of(user, Permission.SEE)
    sources = {row.cluster_id: row for row in TelemetrySource.objects.filter(cluster__in=clusters)}
    rounds = {row.cluster_id: row for row in ExporterRound.objects.filter(cluster__in=clusters)}
    gpu_node = Node.objects.visible_to(user).with_gpus().filter(cluster=OuterRef("pk"))
    with_gpus = set(Cluster.objects.filter(Exists(gpu_node)).order_by().values_list("pk", flat=True))
    standings = {one.pk: source_state(sources.get(one.pk), rounds.get(one.pk), now=now) for one in clusters}
    reporting = {key: standing for key, standing in standings.items() if standing.is_reporting}
    exporting = exporting_of(reporting, Node.objects.visible_to(user))
    return found + [
        _with_blind_rules(
            _telemetry_age(one, source, asked, standing, is_whole=is_whole, now=now), exporting.get(one.pk)
        )
        for one in clusters
        if one.pk in sources or one.pk in with_gpus
        for source, asked in [(sources.get(one.pk), rounds.get(one.pk))]
        for standing, is_whole in [(standings[one.pk], whole.covers_cluster(one.pk))]
    ]


def _telemetry_age(
    cluster: Cluster,
    source: TelemetrySource | None,
    asked: ExporterRound | None,
    standing: Standing,
    *,
    is_whole: bool,
    now: datetime,
) -> Age:
    name = f"telemetry of {cluster.name}"
    if not standing.has_source:
        is_off = source is not None and source.state == SourceState.OFF
        lacks = "Its source is switched off" if is_off else "It has no source"
        return Age(name, None, is_late=True, reason=f"{lacks}, so the health of its GPUs is unknown.")
    if source is None or source.state == SourceState.OFF:
        read_at = asked.read_at if asked else None
        return Age(name, read_at, standing.is_silent, asked.message if asked and is_whole else "")
    reason = source.message if is_whole else ""
    if standing.is_silent and not source.message:
        asked_at = source.answered_at
        reason = (
            f"The source was not queried since {moment(asked_at, now=now)}."
            if asked_at
            else "The source was not queried yet."
        )
    return Age(name, source.answered_at, standing.is_silent, reason)


def _with_blind_rules(age: Age, exporting: Exporting | None) -> Age:
    """Adds the rules that have no metric to read, where the exported metrics are known."""
    if exporting is None or not exporting.of:
        return age
    blind: dict[frozenset[AlikeExporters], list[str]] = {}
    for rule in MISSED:
        if those := exporting.blind(rule):
            blind.setdefault(those, []).append(rule.title)
    said = [_blind_rules_sentence(titles, exporting.number_of(those), exporting.of) for those, titles in blind.items()]
    said += [
        _partial_rule_sentence(rule, number, exporting.of)
        for rule in SEEING_LESS
        if (number := _seeing_less(rule, exporting))
    ]
    if exporting.never_reported:
        said.append(f"{exporting.never_reported} of {count(exporting.of, 'node')} reported nothing within a day.")
    return replace(age, is_late=age.is_late or exporting.is_unread, reason=" ".join(filter(None, (age.reason, *said))))


def _blind_rules_sentence(titles: Sequence[str], nodes: int, of: int) -> str:
    where = "" if nodes == of else f" on {nodes} of {count(of, 'node')}"
    rules, lacks = count(len(titles), "rule"), either(len(titles), "lacks", "lack")
    find, there = either(len(titles), "finds", "find"), "here" if nodes == of else "there"
    return f"{rules} {lacks} an exported metric{where} and {find} nothing {there}: {_all_titles(titles)}."


def _seeing_less(rule: SeesLess, exporting: Exporting) -> int:
    return exporting.number_of(exporting.seeing_less(rule))


def _partial_rule_sentence(rule: SeesLess, nodes: int, of: int) -> str:
    where = "" if nodes == of else f"On {nodes} of {count(of, 'node')}: "
    return f"{where}{METRICS[rule.own].title} are not exported; the rule {rule.title} sees only {rule.instead}."


def _all_titles(titles: Sequence[str]) -> str:
    return names(titles, most=len(titles))
