"""Findings about operations that wait for a person: a second approver, or a decision after failures."""

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count
from django.urls import reverse

from fleet.models import Cluster
from health.evaluation.finding_sources import FindingSource
from health.rules.base import Problem, Severity
from operations.commands import TITLES
from operations.lifecycle import OperationState
from operations.models import Operation
from wording.numbers import count
from wording.reports import LONGEST_SUMMARY, EvidenceItem, fit, instant

PROPOSED = "Another person has to approve it. Nothing is written before."
STATES = (OperationState.PROPOSED, OperationState.PAUSED)


def waiting_operations(cluster: Cluster, *, now: datetime) -> Iterator[tuple[str, Problem]]:  # noqa: ARG001
    """Yields operations that nobody continues. Two queries."""
    waiting = Operation.objects.filter(cluster=cluster, state__in=STATES)
    totals = dict(waiting.annotate(total=Count("nodes")).values_list("pk", "total"))
    for row in waiting.order_by("pk"):
        title = f"{TITLES.get(row.kind, 'Operation')} of {count(totals.get(row.pk, 0), 'node')}"
        reason = PROPOSED if row.state == OperationState.PROPOSED else row.state_reason
        yield (
            f"operation {row.pk}",
            Problem(
                severity=Severity.WARNING,
                title=fit("{} waits for a person", title),
                summary=fit("{}", reason, longest=LONGEST_SUMMARY),
                evidence=(
                    EvidenceItem("State", row.state),
                    instant("Since", row.state_since),
                    EvidenceItem("Asked by", row.asked_by),
                    EvidenceItem("Reason", row.reason),
                ),
                facts={"operation": row.pk},
                identity=f"{row.state} {row.state_since}",
            ),
        )


def _page(facts: Mapping[str, Any]) -> str:
    return reverse("operation", args=[facts["operation"]])


WAITING = FindingSource(
    "operation-waits",
    "Operation waits for a person",
    timedelta(minutes=10),
    waiting_operations,
    "A proposed operation has no approval, or a paused one is neither resumed nor cancelled.",
    _page,
    (
        "Open the operation. It shows its nodes and what it waits for.",
        "Approve a proposed operation as another person than its author, or cancel it.",
        "Resume, retry or cancel a paused operation.",
    ),
    "operations",
)
