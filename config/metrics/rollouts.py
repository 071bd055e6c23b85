"""Plans: their states, approvals and gates that wait, overdue plans, and what ended ones left on nodes."""

from collections import Counter
from collections.abc import Iterator
from datetime import datetime

from django.db.models import Count, Min
from prometheus_client.core import GaugeMetricFamily, Metric

from fleet.models import Cluster
from health.lifecycle import FindingState
from health.models import Finding
from rollouts.findings.plan_findings import CORDON_LEFT, EXCLUSION_LEFT, LEFT_BEHIND
from rollouts.gates.approval import ApprovalGate
from rollouts.gates.base import Answer
from rollouts.lifecycle import PlanState, StageState
from rollouts.models import GateAnswer, Plan, Stage

IN_PROGRESS = (StageState.OPENING, StageState.PROMOTING, StageState.SOAKING)


def families(now: datetime) -> Iterator[Metric]:
    yield _plans()
    yield _overdue(now)
    yield from _approvals(now)
    yield _gates()
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


def _approvals(now: datetime) -> Iterator[GaugeMetricFamily]:
    text = "Stages that wait for an approval."
    number = GaugeMetricFamily("quarterdeck_approvals_waiting", text, labels=["cluster"])
    text = "Time for which the longest waiting stage has waited for an approval."
    longest = GaugeMetricFamily("quarterdeck_approval_waiting_seconds", text, labels=["cluster"])
    stages = Stage.objects.filter(state=StageState.OPENING, plan__state=PlanState.PROMOTING)
    answers = GateAnswer.objects.filter(is_current=True, gate=ApprovalGate.key, answer=Answer.WAIT, stage__in=stages)
    by_cluster = answers.order_by().values_list("stage__plan__cluster__name").annotate(Count("pk"), Min("since"))
    waiting = {name: (stages, since) for name, stages, since in by_cluster}
    for name in Cluster.objects.order_by("name").values_list("name", flat=True):
        count, since = waiting.get(name, (0, now))
        number.add_metric([name], count)
        longest.add_metric([name], (now - since).total_seconds())
    yield from (number, longest)


def _gates() -> GaugeMetricFamily:
    text = "Current gate results of stages in progress, advisory gates included."
    gauge = GaugeMetricFamily("quarterdeck_gates", text, labels=["gate", "answer"])
    rows = GateAnswer.objects.filter(is_current=True, stage__state__in=IN_PROGRESS).order_by()
    for gate, answer, number in rows.values_list("gate", "answer").annotate(Count("pk")):
        gauge.add_metric([gate, answer], number)
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
