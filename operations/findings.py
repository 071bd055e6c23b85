"""Findings about operations that wait for a person, and about quarantines whose cordon somebody removed."""

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from django.urls import reverse

from fleet.models import Cluster, Node
from health.evaluation.finding_sources import FindingSource
from health.rules.base import Problem, Severity
from operations.commands import PROPOSED
from operations.lifecycle import OperationState
from operations.models import Operation, Quarantine
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


def removed_cordons(cluster: Cluster, *, now: datetime) -> Iterator[tuple[str, Problem]]:  # noqa: ARG001
    """Yields quarantines whose cordon somebody else removed. One query."""
    rows = Quarantine.objects.in_force().filter(cluster=cluster, removed_at__isnull=False).select_related("operation")
    for row in rows.order_by("pk"):
        yield (
            f"quarantine of {row.node_name}",
            Problem(
                severity=Severity.WARNING,
                title=fit("Somebody uncordoned the quarantined node {}", row.node_name),
                summary="Pods start there again. Cordon it again, or accept the uncordon.",
                evidence=(
                    *((instant("Uncordoned before", row.removed_at),) if row.removed_at else ()),
                    EvidenceItem("Quarantined by", row.operation.asked_by),
                    EvidenceItem("Reason", row.operation.reason),
                ),
                facts={"operation": row.operation_id, "node": row.node_uid},
                identity=f"{row.pk} {row.removed_at}",
            ),
        )


def _node_page(facts: Mapping[str, Any]) -> str:
    node = Node.objects.filter(uid=facts["node"]).only("pk").first()
    return reverse("node", args=[node.pk]) if node else _page(facts)


REMOVED = FindingSource(
    "quarantine-removed",
    "Quarantine removed by somebody else",
    timedelta(0),  # new pods come at once
    removed_cordons,
    "Somebody else uncordoned a node that Quarterdeck keeps in quarantine.",
    _node_page,
    (
        "Open the node and read why it was quarantined.",
        "If the reason persists, quarantine it again.",
        "If it may stay in service, choose Accept uncordon. Quarterdeck then removes its marks.",
    ),
    "quarantines",
)
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
