"""Runs a rule over the last days of each cluster, and reports periods without data."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, TypeVar, cast

from django.conf import settings
from django.db.models import Q

from fleet.models import Cluster
from health.backtest.gpus import GpuReplay
from health.backtest.nodes import READ, REPLAYED, replay_node
from health.backtest.replay import WouldBe
from health.backtest.timelines import pasts
from health.evaluation.limits_in_force import LimitsInForce
from health.evaluation.runs import ENDS_AFTER, first_round_at, spans_without_rounds
from health.evaluation.signals import AnyRule
from health.inbox.pool_limits import COMPARING
from health.inbox.rulebook import every_rule
from health.inbox.shadow_mode import MAY_BE_SHADOWS
from health.models import Finding, TelemetrySource
from health.rules.base import NodeFacts, Rule
from health.rules.gpus import GPU_RULES
from health.rules.gpus.base import GpuRule
from health.rules.limits import Limits
from health.rules.node_flapping import WITHIN
from health.sources.secrets import NoSecret
from health.telemetry.prometheus.answers import Unusable
from wording.instants import to_the_minute
from wording.lists import names
from wording.numbers import count

LONGEST = timedelta(days=90)
STEP = timedelta(minutes=1)
ON_TIMELINES = {rule.key: rule for rule in REPLAYED}
BY_METRICS = {rule.key: rule for rule in GPU_RULES}
R = TypeVar("R", bound=AnyRule)
UNSEEING = ("cluster-not-seen", "cluster-unwatched")


class NoReplay(Exception):
    """The history cannot answer for this rule; the sentence gives the reason."""


@dataclass(frozen=True)
class Gap:
    """A period without data."""

    begin: datetime
    end: datetime
    reason: str


@dataclass(frozen=True)
class Replayed:
    """The result for one cluster. `reason` is why it has no data; empty if it has."""

    cluster: str
    reason: str = ""
    read: str = ""  # kinds of data that it read
    begin: datetime | None = None  # how far back that reaches
    end: datetime | None = None
    found: Sequence[WouldBe] = ()  # the oldest first
    gaps: Sequence[Gap] = ()
    reported_ratio: float | None = None  # of the time of all GPUs; None: it is not known by GPU
    notes: Sequence[str] = ()


def why_not(rule: str) -> str:
    """Returns why this rule cannot be replayed; empty if it can."""
    if rule in ON_TIMELINES or rule in BY_METRICS:
        return ""
    known = {entry.key: entry for entry in every_rule()}
    if rule not in known:
        return f"Rule {rule} does not exist. GET /api/v1/rules lists all rules."
    reads = ", ".join(known[rule].reads) or "Quarterdeck's own rows"
    instead = " Use shadow mode instead." if rule in MAY_BE_SHADOWS else ""
    return f"The rule reads {reads}. Quarterdeck stores only their present state.{instead}"


def replay(
    rule: str,
    clusters: Collection[Cluster],
    *,
    last: timedelta,
    step: timedelta = STEP,
    limits: Limits | None = None,
    report_progress: Callable[[Cluster, float], None] = lambda _cluster, _share: None,
    clock: Callable[[], datetime],
) -> list[Replayed]:
    """Replays the rule cluster by cluster. `limits` replace the rule's own and those of pools.

    :raises NoReplay: when the rule cannot be replayed, or the limits do not fit it
    """
    if said := why_not(rule):
        raise NoReplay(said)
    if limits is not None and (said := _why_not_limits(rule, limits)):
        raise NoReplay(said)
    if rule in ON_TIMELINES:
        on_nodes = _with_limits(ON_TIMELINES[rule], limits)
        return [_replay_timelines(cluster, on_nodes, last, limits, now=clock()) for cluster in clusters]
    on_gpus = _with_limits(BY_METRICS[rule], limits)
    return [_replay_metrics(cluster, on_gpus, last, step, limits, report_progress, clock) for cluster in clusters]


def _why_not_limits(rule: str, limits: Limits) -> str:
    if rule not in COMPARING:
        return f"The rule has no limits. Rules with limits: {', '.join(COMPARING)}."
    return " ".join(sentence for _, sentence in COMPARING[rule].scale.problems(limits))


def _with_limits(rule: R, limits: Limits | None) -> R:
    """Returns the rule with these limits; None keeps its own."""
    return rule if limits is None else cast("R", replace(cast("Any", rule), limits=limits))


def _limits_of_cluster(cluster: Cluster, rule: AnyRule, limits: Limits | None) -> LimitsInForce:
    return LimitsInForce.of(cluster, [rule]) if limits is None else LimitsInForce()


def _replay_metrics(
    cluster: Cluster,
    rule: GpuRule,
    last: timedelta,
    step: timedelta,
    limits: Limits | None,
    report_progress: Callable[[Cluster, float], None],
    clock: Callable[[], datetime],
) -> Replayed:
    source = TelemetrySource.objects.filter(cluster=cluster, is_on=True).select_related("cluster").first()
    if source is None:
        return Replayed(
            cluster.name, "The cluster has no Prometheus. Values from exporter pods are stored for a short time only."
        )
    replaying, end = (
        GpuReplay(cluster, source, rule, _limits_of_cluster(cluster, rule, limits), clock),
        clock().replace(microsecond=0),
    )
    begin = end - last
    try:
        replaying.run(begin, end, step, report_progress=lambda share: report_progress(cluster, share))
    except (Unusable, NoSecret) as error:
        return Replayed(cluster.name, f"The cluster's Prometheus returns no history. {error}")
    reporting = replaying.reporting
    gaps = [Gap(*each) for each in reporting.gaps]
    if reporting.first_at is None:
        reasons = " ".join(dict.fromkeys(gap.reason for gap in gaps))
        return Replayed(
            cluster.name,
            f"The cluster's Prometheus has no samples of these {count(last.days, 'day')}. {reasons}".strip(),
        )
    return Replayed(
        cluster.name,
        read="samples that its Prometheus still has",
        begin=reporting.first_at,
        end=end,
        found=replaying.replay.opened,
        gaps=gaps,
        reported_ratio=reporting.ratio,
        notes=replaying.notes,
    )


def _replay_timelines(
    cluster: Cluster, rule: Rule[NodeFacts], last: timedelta, limits: Limits | None, *, now: datetime
) -> Replayed:
    in_force = _limits_of_cluster(cluster, rule, limits)
    kept = timedelta(days=settings.KEEP_HISTORY_DAYS)
    begin = max(now - last, now - kept, cluster.added_at)
    found: list[WouldBe] = []
    nodes = unknown = 0
    unsure: list[str] = []
    for node in pasts(cluster, since=begin - WITHIN):
        nodes += 1
        unknown += not node.is_known
        if node.is_known:
            found += replay_node(node, in_force.rule_for(rule, node.name), begin=begin, end=now)
        if known_until := node.known_until(READ):
            unsure.append(f"{node.name} ({to_the_minute(known_until)})")
    if nodes == unknown:
        return Replayed(cluster.name, "The cluster has no GPU nodes with a stored timeline.")
    first = first_round_at(cluster.pk) or now
    notes = ["Changes while Quarterdeck did not run count from its restart."]
    if first - begin > ENDS_AFTER:
        notes.append(f"Before {to_the_minute(first)}, nothing records when Quarterdeck did not run.")
    if unknown:
        notes.append(f"The state of {count(unknown, 'node')} that left the cluster is unknown.")
    if unsure:
        notes.append(f"The later state of these nodes is unknown, because a change was not recorded: {names(unsure)}.")
    return Replayed(
        cluster.name,
        read="the timelines of its nodes",
        begin=begin,
        end=now,
        found=sorted(found, key=lambda one: (one.opened_at or one.since, one.subject)),
        gaps=_unseen(cluster, begin, now),
        notes=notes,
    )


def _unseen(cluster: Cluster, begin: datetime, end: datetime) -> list[Gap]:
    """Returns the periods in which the cluster was not observed, from the findings about it."""
    over = Q(resolved_at=None) | Q(resolved_at__gt=begin)
    rows = Finding.objects.filter(over, cluster=cluster, rule__in=UNSEEING, opened_at__isnull=False, since__lt=end)
    unseen = [Gap(max(row.since, begin), row.resolved_at or end, row.title) for row in rows.order_by("since", "pk")]
    away = spans_without_rounds(cluster.pk, since=begin, now=end)
    return sorted(
        [*unseen, *(Gap(since, until, "Quarterdeck did not run") for since, until in away)], key=lambda gap: gap.begin
    )
