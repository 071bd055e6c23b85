"""How old what each source says is: where nothing is found, silence is not to be taken for health."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Exists, OuterRef

from fleet.messages.announce import cluster_group
from fleet.models import Cluster, ExporterRound, Node
from fleet.queries import ClusterRow
from health.models import SourceState, TelemetrySource
from health.rules.gpus import GPU_RULES
from health.rules.gpus.base import can_see
from health.sources.of_clusters import exported_by_exporters
from health.sources.of_node import standing_of
from health.telemetry.metrics import METRICS
from people.models import User
from people.rights import Permission, scope_of
from wording.instants import moment
from wording.lists import names
from wording.numbers import count, either


@dataclass(frozen=True)
class Age:
    """How old what a source says is. `is_late`: so old, or so lacking, that its silence says nothing."""

    name: str
    at: datetime | None
    is_late: bool
    because: str = ""
    topic: str = ""  # whose heartbeats say how old it is from then on; blank: none do

    @property
    def words(self) -> str:
        return f"{self.name}: {self.because}" if self.because else self.name


def ages_of(user: User, lines: Sequence[ClusterRow], *, now: datetime) -> list[Age]:
    """Of each cluster that this person sees, and of what tells of its GPUs. Three queries.

    Who does not see a cluster whole has no more of its source than how old it is: what it said names addresses.
    """
    sights = [(line.cluster, line.freshness.sight) for line in lines]
    clusters = [line.cluster for line in lines]
    found = [
        Age(f"cluster {one.name}", seen.heard_at, not seen.is_live, seen.because, topic=cluster_group(one.pk))
        for one, seen in sights
    ]
    whole = scope_of(user, Permission.SEE)
    sources = {row.cluster_id: row for row in TelemetrySource.objects.filter(cluster__in=clusters)}
    rounds = {row.cluster_id: row for row in ExporterRound.objects.filter(cluster__in=clusters)}
    gpu_node = Node.objects.visible_to(user).with_gpus().filter(cluster=OuterRef("pk"))
    with_gpus = set(Cluster.objects.filter(Exists(gpu_node)).order_by().values_list("pk", flat=True))
    return found + [
        _of_telemetry(one, sources.get(one.pk), rounds.get(one.pk), is_whole=whole.covers_cluster(one.pk), now=now)
        for one in clusters
        if one.pk in sources or one.pk in with_gpus
    ]


def _of_telemetry(
    cluster: Cluster, source: TelemetrySource | None, asked: ExporterRound | None, *, is_whole: bool, now: datetime
) -> Age:
    name, standing = f"telemetry of {cluster.name}", standing_of(source, asked, now=now)
    if not standing.has_source:
        is_off = source is not None and source.state == SourceState.OFF
        lacks = "Its source is switched off" if is_off else "It has no source"
        return Age(name, None, is_late=True, because=f"{lacks}: nobody sees how its GPUs are.")
    if source is None or source.state == SourceState.OFF:
        read_at = asked.read_at if asked else None
        said = asked.message if asked and is_whole else ""
        blind = "" if standing.is_silent else _blind(exported_by_exporters(cluster))
        return Age(name, read_at, standing.is_silent, said or blind)
    because = source.message if is_whole else ""
    if standing.is_silent and not source.message:
        asked_at = source.answered_at
        because = f"Nobody asks it since {moment(asked_at, now=now)}." if asked_at else "Nobody has asked it yet."
    blind = "" if standing.is_silent else _blind(standing.exported)
    return Age(name, source.answered_at, standing.is_silent, because or blind)


def _blind(exported: Collection[str]) -> str:
    """Which rules have nothing to read, where it is known what is exported: that they are quiet says nothing."""
    missed = [rule for rule in GPU_RULES if any(METRICS[key].is_missed for key in rule.metrics)]
    titles = [rule.title for rule in missed if not can_see(rule, exported)]
    if not exported or not titles:
        return ""
    would, find = count(len(titles), "rule"), either(len(titles), "it finds", "they find")
    return f"Not exported is what {would} would read, so that {find} nothing here: {names(titles, most=len(titles))}."
