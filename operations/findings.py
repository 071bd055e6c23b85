"""Findings about operations that wait for a person: a second approver, or a decision after failures."""

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from django.urls import reverse

from fleet.models import Cluster
from health.evaluation.finding_sources import FindingSource
from health.rules.base import Problem, Severity
from operations.commands import PROPOSED
from operations.lifecycle import OperationState
from operations.models import Operation
from wording.reports import LONGEST_SUMMARY, EvidenceItem, fit, instant

STATES = (OperationState.PROPOSED, OperationState.PAUSED)


def waiting_operations(cluster: Cluster, *, now: datetime) -> Iterator[tuple[str, Problem]]:  # noqa: ARG001
    """Yields operations that nobody continues. One query, and one more for each."""
    for row in Operation.objects.filter(cluster=cluster, state__in=STATES).order_by("pk"):
        reason = PROPOSED if row.state == OperationState.PROPOSED else row.state_reason
        yield (
            f"operation {row.pk}",
            Problem(
                severity=Severity.WARNING,
                title=fit("{} waits for a person", row.summary),
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
