"""GPU findings of a cluster whose telemetry source was removed: nothing else would resolve them.

A silent source is different: its findings stay as they are.
"""

import math
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial

import structlog

from edges.slices import slices
from fleet.freshness.kinds import NODES, PODS
from fleet.models import Bookmark, Cluster, ExporterRound, ExportersState, Operand
from gpu.operands import EXPORTERS
from health.evaluation.finding_openings import correlate, lock_findings, resolve
from health.inbox.acts import recount
from health.models import Finding, TelemetrySource
from health.models.finding import FindingQuerySet
from health.rules.exporter_silent import ExporterSilent
from health.rules.gpus import GPU_RULES
from health.rules.idle_gpus import IdleGpus
from health.sources.node_telemetry import source_state
from kube import resources

NOBODY_LISTENS = "nobody listens to its GPUs any more"
GPU_RULE_KEYS = frozenset({*(rule.key for rule in GPU_RULES), IdleGpus.key, ExporterSilent.key})
TIMEOUT_S = 2.0  # a request resolves for so long: the next look does the rest
GONE_AFTER = timedelta(minutes=15)  # time without an exporter; a reinstalled operator creates its DaemonSets sooner
SEEN_LIVE = frozenset({NODES, PODS, resources.DAEMON_SETS.name})
log = structlog.get_logger(__name__)


def is_reporting(cluster: Cluster, *, now: datetime) -> bool:
    """Returns whether a Prometheus is configured, or any exporter that is read directly answers, with two queries."""
    if TelemetrySource.objects.filter(cluster=cluster, is_on=True).exists():
        return True
    asked = ExporterRound.objects.filter(cluster=cluster).first()
    return asked is not None and asked.answered > 0 and not source_state(None, asked, now=now).is_silent


def mark_telemetry_lost(cluster: Cluster, *, now: datetime) -> None:
    """Records that the cluster's GPU findings end, in the transaction that removes the last source."""
    Cluster.objects.filter(pk=cluster.pk).update(telemetry_lost_since=now)


def resolve_gpu_findings(cluster: Cluster, *, now: datetime) -> None:
    """Resolves the marked findings after that transaction, for as long as a request may take."""
    is_so = partial(_is_over, cluster, now=now)
    _resolve(cluster, is_so, until=time.monotonic() + TIMEOUT_S, now=now)


def go_on(cluster: Cluster, *, now: datetime) -> None:
    """Resolves what `resolve_gpu_findings` left, and findings of evaluations that had begun before. One query without a
    mark.

    A source that reports again removes the mark.
    """
    if not _is_marked(cluster):
        return
    if is_reporting(cluster, now=now):
        Cluster.objects.filter(pk=cluster.pk).update(telemetry_lost_since=None)
        return
    _resolve(cluster, partial(_is_over, cluster, now=now), until=math.inf, now=now)


def resolve_gone(cluster: Cluster, *, now: datetime) -> None:
    """Resolves findings where exporters were read directly and have been removed for good. One query where nothing is
    open.

    Their last samples are kept: if the exporters return, earlier Xids still count.
    """
    if not _gpu_findings(cluster).exists() or not _exporters_are_gone(cluster, now=now):
        return
    _resolve(cluster, partial(_exporters_are_gone, cluster, now=now), until=math.inf, now=now)
    log.info("findings about GPUs end: no exporter is left to ask", cluster=cluster.name)


def _exporters_are_gone(cluster: Cluster, *, now: datetime) -> bool:
    """Returns whether a live cluster has had no exporter pod for a while, and no DaemonSet that would create one.

    A DaemonSet without pods is a rollout or paused nodes. The period starts again if the cluster was not observed in
    between.
    """
    asked = ExporterRound.objects.filter(cluster=cluster, state=ExportersState.NONE, state_since__lte=now - GONE_AFTER)
    if not asked.exists() or TelemetrySource.objects.filter(cluster=cluster, is_on=True).exists():
        return False
    marks = Bookmark.objects.filter(cluster=cluster, kind__in=SEEN_LIVE)
    if {mark.kind for mark in marks if mark.is_fresh(now=now)} != SEEN_LIVE:
        return False
    return not Operand.objects.filter(cluster=cluster, operand__in=EXPORTERS).exists()


def _gpu_findings(cluster: Cluster) -> FindingQuerySet:
    return Finding.objects.unresolved().filter(cluster=cluster, rule__in=GPU_RULE_KEYS)


def _is_marked(cluster: Cluster) -> bool:
    return Cluster.objects.filter(pk=cluster.pk, telemetry_lost_since__isnull=False).exists()


def _is_over(cluster: Cluster, *, now: datetime) -> bool:
    return _is_marked(cluster) and not is_reporting(cluster, now=now)


def _resolve(cluster: Cluster, is_so: Callable[[], bool], *, until: float, now: datetime) -> None:
    """Resolves findings in batches while the condition holds, since a source may be added between two batches.

    `until` is a time of the monotonic clock.
    """
    ended = list(_gpu_findings(cluster).order_by("pk").values_list("pk", flat=True))
    for some in slices(ended):
        with lock_findings(cluster):
            if not is_so():
                break
            rows = _gpu_findings(cluster).filter(pk__in=some.whole()).select_related("node")
            resolve(list(rows), reason=NOBODY_LISTENS, now=now)
        if time.monotonic() > until:
            break
    if ended:
        correlate(cluster, now=now)
        recount(cluster, now=now)
