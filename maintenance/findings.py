"""Findings about cases that wait for a person, so that a sick node is not forgotten."""

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from django.urls import reverse

from fleet.models import Cluster
from health.evaluation.finding_sources import FindingSource
from health.rules.base import Problem, Severity
from maintenance.lifecycle import FINAL, CaseFacts, CaseState
from maintenance.models import NodeCase
from maintenance.queries import facts_of
from wording.durations import spell
from wording.reports import LONGEST_SUMMARY, EvidenceItem, fit, instant

IDLE_FOR = timedelta(hours=4)  # a node out of service without a next step
SOON = frozenset({CaseState.DRAIN_BLOCKED, CaseState.IN_REPAIR, CaseState.PROBATION})  # their obstacles need a person
BY_ITSELF = frozenset({CaseState.SUSPECT, CaseState.DRAINING, CaseState.IN_REPAIR, CaseState.PROBATION, *FINAL})


def waiting_cases(cluster: Cluster, *, now: datetime) -> Iterator[tuple[str, Problem]]:
    """Yields open cases that wait for a person. One query, and seven more with open cases."""
    cases = list(NodeCase.objects.open().filter(cluster=cluster).select_related("finding").order_by("pk"))
    facts = facts_of(cases)
    for case in cases:
        if reason := _why_waiting(facts[case.pk], now=now):
            yield (
                f"case {case.pk}",
                Problem(
                    severity=Severity.WARNING,
                    title=fit("Case of {} waits for a person", case.node_name),
                    summary=fit("{}", reason, longest=LONGEST_SUMMARY),
                    evidence=(
                        EvidenceItem("State", case.title),
                        instant("Since", case.state_since),
                        EvidenceItem("Reason", case.reason),
                    ),
                    facts={"case": case.pk},
                    identity=f"{case.state} {reason}",
                ),
            )


def _why_waiting(facts: CaseFacts, *, now: datetime) -> str:
    """Returns why the case waits for a person. Blank: it does not, or not for long."""
    if facts.state == CaseState.PROBATION and not facts.lacks_validation:
        return ""
    if facts.state in SOON and facts.obstacle:
        return facts.obstacle
    if facts.state not in BY_ITSELF and not facts.is_busy and now - facts.since >= IDLE_FOR:
        return f"The node is out of service without a next step for more than {spell(IDLE_FOR)}."
    return ""


def _page(facts: Mapping[str, Any]) -> str:
    return reverse("case", args=[facts["case"]])


WAITING = FindingSource(
    "case-waits",
    "Case waits for a person",
    timedelta(minutes=10),  # a reboot takes minutes
    waiting_cases,
    "A drain is blocked, a repair is overdue, a node returned without a validation, or nobody does the next step.",
    _page,
    (
        "Open the case. It shows what it waits for, and the next step.",
        "If the drain is blocked, look at the pod and the budget that it names.",
        "If the node returned without a validation, run the test and record its result.",
    ),
    "cases",
)
