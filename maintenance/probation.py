"""Tells for how long a node or a cluster was observed: silence is no proof, and neither is an outage of Quarterdeck."""

from datetime import datetime, timedelta

from django.db.models import Q

from fleet.freshness.cluster import load_cluster_freshness
from health.backtest.backtest import UNSEEING
from health.evaluation.runs import spans_without_rounds
from health.models import Finding
from health.rules.exporter_silent import ExporterSilent
from health.rules.telemetry_silent import TelemetrySilent
from health.sources.allocated_hours import length_of
from maintenance.lifecycle import PROBATION_FOR, CaseState
from maintenance.models import NodeCase
from wording.durations import spell


def was_observed(case: NodeCase, *, now: datetime) -> bool:
    """Returns whether the cluster is seen now, and the node was seen for the time of a probation. Five queries.

    A time without telemetry is unseen, also if none ever came: a case of a node without telemetry waits for a person.
    """
    if not load_cluster_freshness(case.cluster, now=now).is_fresh:
        return False
    silent = Q(rule=TelemetrySilent.key) | Q(rule=ExporterSilent.key, node__uid=case.node_uid)
    return observed_for(case.cluster_id, silent, since=case.state_since, now=now) >= PROBATION_FOR


def observed_for(cluster_id: int, silent: Q | None = None, *, since: datetime, now: datetime) -> timedelta:
    """Returns how long the cluster was seen and evaluated since then. `silent`: further findings that hide it."""
    hiding = Q(rule__in=UNSEEING) if silent is None else Q(rule__in=UNSEEING) | silent
    blind = Finding.objects.filter(hiding, cluster=cluster_id)
    rows = blind.filter(Q(resolved_at=None) | Q(resolved_at__gt=since)).values_list("since", "resolved_at")
    unseen = [(max(begun, since), ended or now) for begun, ended in rows]
    return (
        now - since - timedelta(seconds=length_of([*unseen, *spans_without_rounds(cluster_id, since=since, now=now)]))
    )


def why_longer(case: NodeCase, *, now: datetime) -> str:
    """Returns why a probation is longer than its time. Blank: it is not. No query before that."""
    if case.state != CaseState.PROBATION or now - case.state_since < PROBATION_FOR or was_observed(case, now=now):
        return ""
    return (
        f"The case needs {spell(PROBATION_FOR)} of observation. The node or its GPU telemetry was not seen for a part "
        "of them, or Quarterdeck did not run. A person may close the case."
    )
