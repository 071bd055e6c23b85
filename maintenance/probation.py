"""Tells whether a node on probation was observed for as long as its probation lasts: silence is no proof."""

from datetime import datetime

from django.db.models import Q

from fleet.freshness.cluster import load_cluster_freshness
from health.backtest.backtest import UNSEEING
from health.models import Finding
from health.rules.exporter_silent import ExporterSilent
from health.rules.telemetry_silent import TelemetrySilent
from health.sources.allocated_hours import length_of
from maintenance.lifecycle import PROBATION_FOR, CaseState
from maintenance.models import NodeCase
from wording.durations import spell


def was_observed(case: NodeCase, *, now: datetime) -> bool:
    """Returns whether the cluster is seen now, and the node was seen for the time of a probation. Three queries.

    A time without telemetry is unseen, also if none ever came: a case of a node without telemetry waits for a person.
    """
    if not load_cluster_freshness(case.cluster, now=now).is_fresh:
        return False
    since = case.state_since
    silent = Q(rule__in=(*UNSEEING, TelemetrySilent.key)) | Q(rule=ExporterSilent.key, node__uid=case.node_uid)
    blind = Finding.objects.filter(silent, cluster=case.cluster_id)
    rows = blind.filter(Q(resolved_at=None) | Q(resolved_at__gt=since)).values_list("since", "resolved_at")
    unseen_s = length_of((max(begun, since), ended or now) for begun, ended in rows)
    return (now - since).total_seconds() - unseen_s >= PROBATION_FOR.total_seconds()


def why_longer(case: NodeCase, *, now: datetime) -> str:
    """Returns why a probation is longer than its time. Blank: it is not. No query before that."""
    if case.state != CaseState.PROBATION or now - case.state_since < PROBATION_FOR or was_observed(case, now=now):
        return ""
    return (
        f"The case needs {spell(PROBATION_FOR)} of observation. The node or its GPU telemetry was not seen for a part "
        "of them. A person may close the case."
    )
