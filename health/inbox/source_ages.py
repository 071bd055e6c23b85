"""How old what each source says is: where nothing is found, silence is not to be taken for health."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from django.db.models import Exists, OuterRef

from fleet.messages.announce import cluster_group
from fleet.models import Cluster, ExporterRound, Node
from fleet.queries import ClusterRow
from health.models import SourceState, TelemetrySource
from health.rules.gpus import GPU_RULES
from health.rules.gpus.base import SeesLess
from health.sources.exported_metrics import MISSED, AlikeExporters, Exporting, exporting_of
from health.sources.node_telemetry import standing_of
from health.sources.readings import Standing
from health.telemetry.metrics import METRICS
from people.models import User
from people.rights import Permission, scope_of
from wording.instants import moment
from wording.lists import names
from wording.numbers import count, either

SEEING_LESS = tuple(rule for rule in GPU_RULES if isinstance(rule, SeesLess))


@dataclass(frozen=True)
class Age:
    """How old what a source says is. `is_late`: so old, or so lacking, that its silence says nothing."""

    name: str
    at: datetime | None
    is_late: bool
    reason: str = ""
    topic: str = ""  # whose heartbeats say how old it is from then on; blank: none do

    @property
    def words(self) -> str:
        return f"{self.name}: {self.reason}" if self.reason else self.name


def ages_of(user: User, lines: Sequence[ClusterRow], *, now: datetime) -> list[Age]:
    """Of each cluster that this person sees, and of what tells of its GPUs. Four queries.

    Who does not see a cluster whole has no more of its source than how old it is: what it said names addresses.
    """
    sights = [(line.cluster, line.freshness.sight) for line in lines]
    clusters = [line.cluster for line in lines]
    found = [
        Age(f"cluster {one.name}", seen.heard_at, not seen.is_live, seen.reason, topic=cluster_group(one.pk))
        for one, seen in sights
    ]
    whole = scope_of(user, Permission.SEE)
    sources = {row.cluster_id: row for row in TelemetrySource.objects.filter(cluster__in=clusters)}
    rounds = {row.cluster_id: row for row in ExporterRound.objects.filter(cluster__in=clusters)}
    gpu_node = Node.objects.visible_to(user).with_gpus().filter(cluster=OuterRef("pk"))
    with_gpus = set(Cluster.objects.filter(Exists(gpu_node)).order_by().values_list("pk", flat=True))
    standings = {one.pk: standing_of(sources.get(one.pk), rounds.get(one.pk), now=now) for one in clusters}
    heard = {key: standing for key, standing in standings.items() if standing.is_heard}
    exporting = exporting_of(heard, Node.objects.visible_to(user))
    return found + [
        _with_blind(_of_telemetry(one, source, asked, standing, is_whole=is_whole, now=now), exporting.get(one.pk))
        for one in clusters
        if one.pk in sources or one.pk in with_gpus
        for source, asked in [(sources.get(one.pk), rounds.get(one.pk))]
        for standing, is_whole in [(standings[one.pk], whole.covers_cluster(one.pk))]
    ]


def _of_telemetry(
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
        return Age(name, None, is_late=True, reason=f"{lacks}: nobody sees how its GPUs are.")
    if source is None or source.state == SourceState.OFF:
        read_at = asked.read_at if asked else None
        return Age(name, read_at, standing.is_silent, asked.message if asked and is_whole else "")
    reason = source.message if is_whole else ""
    if standing.is_silent and not source.message:
        asked_at = source.answered_at
        reason = f"Nobody asks it since {moment(asked_at, now=now)}." if asked_at else "Nobody has asked it yet."
    return Age(name, source.answered_at, standing.is_silent, reason)


def _with_blind(age: Age, exporting: Exporting | None) -> Age:
    """Where it is known what is exported, which rules have nothing to read: that they are quiet says nothing."""
    if exporting is None or not exporting.of:
        return age
    blind: dict[frozenset[AlikeExporters], list[str]] = {}
    for rule in MISSED:
        if those := exporting.blind(rule):
            blind.setdefault(those, []).append(rule.title)
    said = [_of_blind(titles, exporting.number_of(those), exporting.of) for those, titles in blind.items()]
    said += [_of_less(rule, number, exporting.of) for rule in SEEING_LESS if (number := _seeing_less(rule, exporting))]
    if exporting.never_heard:
        said.append(f"Of {exporting.never_heard} of {count(exporting.of, 'node')} nothing was heard within a day.")
    return replace(age, is_late=age.is_late or exporting.is_unread, reason=" ".join(filter(None, (age.reason, *said))))


def _of_blind(titles: Sequence[str], nodes: int, of: int) -> str:
    where = "Not" if nodes == of else f"On {nodes} of {count(of, 'node')} not"
    would, find = count(len(titles), "rule"), either(len(titles), "it finds", "they find")
    there = "here" if nodes == of else "there"
    return f"{where} exported is what {would} would read, so that {find} nothing {there}: {_all(titles)}."


def _seeing_less(rule: SeesLess, exporting: Exporting) -> int:
    return exporting.number_of(exporting.seeing_less(rule))


def _of_less(rule: SeesLess, nodes: int, of: int) -> str:
    where = "" if nodes == of else f"On {nodes} of {count(of, 'node')}: "
    return f"{where}{METRICS[rule.own].title} are not exported; the rule {rule.title} sees only {rule.instead}."


def _all(titles: Sequence[str]) -> str:
    return names(titles, most=len(titles))
