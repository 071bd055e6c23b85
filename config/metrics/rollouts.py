"""Plans: their states, how overdue they are, and what ended ones left on nodes."""

from collections import Counter
from collections.abc import Iterator
from datetime import datetime

from django.db.models import Count
from prometheus_client.core import GaugeMetricFamily, Metric

from fleet.models import Cluster
from health.lifecycle import FindingState
from health.models import Finding
from rollouts.findings.plan_findings import CORDON_LEFT, EXCLUSION_LEFT, LEFT_BEHIND
from rollouts.lifecycle import PlanState
from rollouts.models import Plan


def families(now: datetime) -> Iterator[Metric]:
    yield _plans()
    yield _overdue(now)
    yield _left_behind()


def _plans() -> GaugeMetricFamily:
    gauge = GaugeMetricFamily("quarterdeck_plans", "Plans by state.", labels=["state"])
    numbers = dict(Plan.objects.order_by().values_list("state").annotate(Count("pk")))
    for state in PlanState:
        gauge.add_metric([state.value], numbers.get(state.value, 0))
    return gauge


def _overdue(now: datetime) -> GaugeMetricFamily:
    """Returns how overdue plans are. Beat looks every second, so a long wait means that no worker runs."""
    gauge = GaugeMetricFamily("quarterdeck_plan_overdue_seconds", "How long the most overdue plan has been due.")
    waiting = Plan.objects.due(now=now).order_by("next_look_at").first()
    due_at = waiting.next_look_at if waiting else None
    gauge.add_metric([], (now - due_at).total_seconds() if due_at else 0)
    return gauge


def _left_behind() -> GaugeMetricFamily:
    """Returns leftovers on nodes. No sweep removes them, since a person must find the reason."""
    text = "Findings of leftovers of finished plans on nodes: a hold, an exclusion, a cordon."
    gauge = GaugeMetricFamily("quarterdeck_left_behind", text, labels=["cluster", "what"])
    rules = {LEFT_BEHIND.key: "hold", EXCLUSION_LEFT.key: "exclusion", CORDON_LEFT.key: "cordon"}
    rows = Finding.objects.notified().unresolved().exclude(state=FindingState.CONFIRMING).filter(rule__in=rules)
    numbers = Counter(rows.order_by().values_list("cluster__name", "rule"))
    for name in Cluster.objects.order_by("name").values_list("name", flat=True):
        for rule, what in rules.items():
            gauge.add_metric([name, what], numbers[name, rule])
    return gauge
