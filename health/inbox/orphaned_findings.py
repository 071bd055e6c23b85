"""What was found of GPUs that nobody listens to any more: nothing would ever resolve it.

A source that is silent is another thing: what it said last stays as it was.
"""

from datetime import datetime, timedelta

import structlog
from django.db import transaction

from fleet.freshness.kinds import NODES, PODS
from fleet.models import Bookmark, Cluster, ExporterRound, ExportersState, NodeEvent, Operand
from gpu.operands import EXPORTERS
from health.evaluation.finding_openings import correlate, noted
from health.evaluation.shadow_transitions import NO_LONGER_TOLD
from health.inbox.acts import recount
from health.lifecycle import FindingState
from health.models import Finding, TelemetrySource
from health.models.finding import FindingQuerySet
from health.rules.exporter_silent import ExporterSilent
from health.rules.gpus import GPU_RULES
from health.rules.idle_gpus import IdleGpus
from health.sources.node_telemetry import standing_of
from kube import resources

NOBODY_LISTENS = "nobody listens to its GPUs any more"
TOLD_BY_GPUS = frozenset({*(rule.key for rule in GPU_RULES), IdleGpus.key, ExporterSilent.key})
GONE_AFTER = timedelta(minutes=15)  # without an exporter: an operator that is installed anew has its DaemonSets sooner
SEEN_LIVE = frozenset({NODES, PODS, resources.DAEMON_SETS.name})
log = structlog.get_logger(__name__)


def is_heard(cluster: Cluster, *, now: datetime) -> bool:
    """Whether a Prometheus is asked, or the exporters one by one, and any of them answers. Two queries."""
    if TelemetrySource.objects.filter(cluster=cluster, is_on=True).exists():
        return True
    asked = ExporterRound.objects.filter(cluster=cluster).first()
    return asked is not None and asked.answered > 0 and not standing_of(None, asked, now=now).is_silent


def resolve_unheard(cluster: Cluster, *, now: datetime) -> None:
    """In the cluster's lock. A number of statements that does not grow, up to hundreds of findings."""
    _resolve(_told_by_gpus(cluster), cluster, now=now)


def resolve_late(cluster: Cluster, *, looked_at: datetime) -> None:
    """What a look wrote that had heard its GPUs before their source was taken away. One query where there is none."""
    late = _told_by_gpus(cluster).filter(updated_at__gte=looked_at)
    if not late.exists() or is_heard(cluster, now=looked_at):
        return
    with transaction.atomic():
        Cluster.objects.select_for_update(no_key=True).get(pk=cluster.pk)
        _resolve(late, cluster, now=looked_at)


def resolve_gone(cluster: Cluster, *, now: datetime) -> None:
    """Where exporters were asked, and are removed for good. One query where nothing is open.

    What they said last is kept: should they come back, the Xids from before count.
    """
    if not _told_by_gpus(cluster).exists() or not _exporters_are_gone(cluster, now=now):
        return
    with transaction.atomic():
        Cluster.objects.select_for_update(no_key=True).get(pk=cluster.pk)  # a source may be added at this moment
        if _exporters_are_gone(cluster, now=now):
            resolve_unheard(cluster, now=now)
            log.info("findings about GPUs end: no exporter is left to ask", cluster=cluster.name)


def _exporters_are_gone(cluster: Cluster, *, now: datetime) -> bool:
    """Seen live, no pod of one for a while, and no DaemonSet that would make some: a rollout has that, or paused nodes.

    Of a cluster that was not seen in between the while begins anew.
    """
    asked = ExporterRound.objects.filter(cluster=cluster, state=ExportersState.NONE, state_since__lte=now - GONE_AFTER)
    if not asked.exists() or TelemetrySource.objects.filter(cluster=cluster, is_on=True).exists():
        return False
    marks = Bookmark.objects.filter(cluster=cluster, kind__in=SEEN_LIVE)
    if {mark.kind for mark in marks if mark.is_fresh(now=now)} != SEEN_LIVE:
        return False
    return not Operand.objects.filter(cluster=cluster, operand__in=EXPORTERS).exists()


def _told_by_gpus(cluster: Cluster) -> FindingQuerySet:
    return Finding.objects.unresolved().filter(cluster=cluster, rule__in=TOLD_BY_GPUS)


def _resolve(rows: FindingQuerySet, cluster: Cluster, *, now: datetime) -> None:
    rows.filter(opened_at=None).delete()
    found = list(rows.select_related("node"))
    Finding.move_all(found, FindingState.RESOLVED, now=now, resolved_reason=NOBODY_LISTENS)
    sentence = f"{NO_LONGER_TOLD}, as {NOBODY_LISTENS}: "
    NodeEvent.objects.bulk_create(
        noted(one, one.node.uid, one.node.name, sentence + one.sentence, now=now)
        for one in found
        if one.node is not None and not one.is_shadow
    )
    correlate(cluster)
    recount(cluster, now=now)
