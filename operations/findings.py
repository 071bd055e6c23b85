"""Findings about operations that wait for a person or stall, and about quarantines whose cordon somebody removed."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Q
from django.urls import reverse

from fleet.models import Cluster, Node
from health.evaluation.finding_sources import FindingSource
from health.rules.base import Problem, Severity
from operations.commands import PROPOSED
from operations.lifecycle import NodeProgress, OperationState
from operations.models import Operation, OperationNode, Quarantine
from operations.models.operation import HELD_SINCE, is_of_kinds
from operations.steps.out_of_service import POWERED, TROUBLE
from wording.lists import names
from wording.numbers import count
from wording.reports import LONGEST_SUMMARY, EvidenceItem, fit, instant

STATES = (OperationState.PROPOSED, OperationState.PAUSED)
HELD_FOR = timedelta(hours=4)  # by another controller, which may never end: a Machine whose deletion is stuck
OFF_FOR = timedelta(hours=24)  # a node with the taint out-of-service that does not boot


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


def stalled_operations(cluster: Cluster, *, now: datetime) -> Iterator[tuple[str, Problem]]:
    """Yields running operations with nodes that wait too long. One query."""
    rows = OperationNode.objects.unfinished().filter(operation__cluster=cluster)
    rows = rows.filter(operation__state=OperationState.RUNNING).select_related("operation")
    rows = rows.filter(Q(progress__has_any_keys=[HELD_SINCE, TROUBLE]) | is_of_kinds("out-of-service"))
    stalled: dict[Operation, dict[str, str]] = defaultdict(dict)
    for row in rows.order_by("operation", "position"):
        if reason := _why_stalled(row, now=now):
            stalled[row.operation][row.node_name] = reason
    for operation, reasons in stalled.items():
        first = next(iter(reasons.values()))
        yield (
            f"operation {operation.pk}",
            Problem(
                severity=Severity.CRITICAL if first == POWERED else Severity.WARNING,
                title=fit("Operation {} is stalled on {}", operation.pk, count(len(reasons), "node")),
                summary=fit("{}", first, longest=LONGEST_SUMMARY),
                evidence=(
                    EvidenceItem("Nodes", names(list(reasons))),
                    EvidenceItem("Asked by", operation.asked_by),
                    EvidenceItem("Reason", operation.reason),
                ),
                facts={"operation": operation.pk},
                identity=" ".join(sorted(reasons)),
            ),
        )


def _why_stalled(row: OperationNode, *, now: datetime) -> str:
    """Returns what a node has waited for too long. Blank: it has not."""
    if trouble := row.progress.get(TROUBLE):
        return str(trouble)
    if held_since := row.progress.get(HELD_SINCE):
        return row.reason if now - datetime.fromisoformat(held_since) >= HELD_FOR else ""
    is_late = row.state == NodeProgress.RUNNING and row.step_since and now - row.step_since >= OFF_FOR
    return row.reason if is_late else ""


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
STALLED = FindingSource(
    "operation-stalled",
    "Operation is stalled",
    timedelta(minutes=1),  # the waits have limits of their own
    stalled_operations,
    "Another controller has held a node for 4 h, or a node that is marked out of service needs a person: it was "
    "powered, its taint is not removed, or it has not booted for 24 h.",
    _page,
    (
        "Open the operation. It shows what each node waits for.",
        "If another controller holds the node, look at its object: a Machine may be stuck in its deletion.",
        "If a node marked out of service has power, reboot it, or cancel the operation to remove the taint.",
        "Otherwise repair the node, or cancel the operation.",
    ),
    "operations",
)
