"""What was found of GPUs that nobody listens to any more: nothing would ever resolve it.

A source that is silent is another thing: what it said last stays as it was.
"""

from datetime import datetime

from django.db import transaction

from fleet.models import Cluster, ExporterRound, NodeEvent
from health.inbox.acts import recount
from health.judging.opening import correlate, noted
from health.judging.turning import NO_LONGER_TOLD
from health.lifecycle import FindingState
from health.models import Finding, TelemetrySource
from health.models.finding import FindingQuerySet
from health.rules.gpus import GPU_RULES
from health.rules.idle_gpus import IdleGpus
from health.sources.of_node import standing_of

NOBODY_LISTENS = "nobody listens to its GPUs any more"
TOLD_BY_GPUS = frozenset({*(rule.key for rule in GPU_RULES), IdleGpus.key})


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


def _told_by_gpus(cluster: Cluster) -> FindingQuerySet:
    return Finding.objects.unresolved().filter(cluster=cluster, rule__in=TOLD_BY_GPUS)


def _resolve(rows: FindingQuerySet, cluster: Cluster, *, now: datetime) -> None:
    rows.filter(opened_at=None).delete()
    found = list(rows.select_related("node"))
    Finding.move_all(found, FindingState.RESOLVED, now=now, resolved_because=NOBODY_LISTENS)
    sentence = f"{NO_LONGER_TOLD}, as {NOBODY_LISTENS}: "
    NodeEvent.objects.bulk_create(
        noted(one, one.node.uid, one.node.name, sentence + one.sentence, now=now)
        for one in found
        if one.node is not None and not one.is_shadow
    )
    correlate(cluster)
    recount(cluster, now=now)
