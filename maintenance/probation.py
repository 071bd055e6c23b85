"""Tells whether a node on probation was observed for as long as its probation lasts: silence is no proof."""

from datetime import datetime

from django.db.models import Q

from fleet.freshness.cluster import load_cluster_freshness
from health.backtest.backtest import UNSEEING
from health.models import Finding
from health.rules.exporter_silent import ExporterSilent
from health.rules.telemetry_silent import TelemetrySilent
from health.sources.allocated_hours import length_of
from maintenance.lifecycle import PROBATION_FOR
from maintenance.models import NodeCase


def was_observed(case: NodeCase, *, now: datetime) -> bool:
    """Returns whether the cluster is seen now, and the node was seen for the time of a probation. Three queries.

    Times without telemetry count as unseen if it stopped after the return.
    """
    if not load_cluster_freshness(case.cluster, now=now).is_fresh:
        return False
    since = case.state_since
    stopped = Q(rule=TelemetrySilent.key, since__gt=since) | Q(
        rule=ExporterSilent.key, node__uid=case.node_uid, since__gt=since
    )
    blind = Finding.objects.filter(Q(rule__in=UNSEEING) | stopped, cluster=case.cluster_id)
    rows = blind.filter(Q(resolved_at=None) | Q(resolved_at__gt=since)).values_list("since", "resolved_at")
    unseen_s = length_of((max(begun, since), ended or now) for begun, ended in rows)
    return (now - since).total_seconds() - unseen_s >= PROBATION_FOR.total_seconds()
