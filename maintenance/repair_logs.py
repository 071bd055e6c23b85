"""The log bundle before a repair that loses the node's kernel log: collected first, and never waited for long (R13)."""

from datetime import datetime, timedelta
from typing import Any

from django.db import transaction

from fleet.models import Node
from maintenance.actors.person import Person
from maintenance.lifecycle import NO_LOGS, RepairKind
from maintenance.models import Repair
from operations import commands as operations
from operations.lifecycle import NodeProgress
from operations.models import OperationNode
from operations.refusals import BadOperation, OperationRefused

LOSING_LOGS = frozenset({RepairKind.REBOOT, RepairKind.GPU_RESET})
WAITS_FOR = timedelta(minutes=6)  # the deadline of a bundle, and the deletion of its pod
FIRST = "The logs of the node are collected first."


def collect_logs_for_people(*, now: datetime) -> None:
    """Starts the bundles of repairs that people do: no worker asks them. One query without such a repair."""
    rows = Repair.objects.open().filter(by=Person.key, kind__in=LOSING_LOGS, asked_at__gt=now - WAITS_FOR)
    for repair in rows.select_related("case__cluster"):
        collect_logs(repair, now=now)


def collect_logs(repair: Repair, *, now: datetime) -> str:
    """Starts the bundle of a repair once. The case records why there is none.

    Returns why its actor is not asked yet. Blank: the logs are there, there are none, or they took too long.
    """
    if repair.kind not in LOSING_LOGS:
        return ""
    bundle = OperationNode.objects.filter(operation__key=_key(repair)).select_related("operation").first()
    if bundle is not None:
        is_over = bundle.state not in (NodeProgress.PENDING, NodeProgress.RUNNING)
        return "" if is_over or now - bundle.operation.asked_at >= WAITS_FOR else FIRST
    if repair.case.moves.filter(verb=f"case.{NO_LOGS}", evidence__repair=repair.pk).exists():
        return ""
    if why_none := _start(repair, now=now):
        given: dict[str, Any] = {"actor": repair.asked_by, "evidence": {"repair": repair.pk}, "now": now}
        repair.case.record(NO_LOGS, reason=why_none, **given)
        return ""
    return FIRST


def _start(repair: Repair, *, now: datetime) -> str:
    """Starts the bundle. Returns why it does not start; blank: it does."""
    case = repair.case
    node = Node.objects.filter(cluster=case.cluster_id, uid=case.node_uid).first()
    if node is None:
        return "The node is not seen in its cluster."
    reason = f"Before the {repair.kind.replace('-', ' ')}: it may lose the logs of the node."
    try:
        with transaction.atomic():
            operations.start(
                case.cluster, "logs", [node], actor=repair.asked_by, reason=reason, typed_count=1, key=_key(repair),
                now=now,
            )  # fmt: skip
    except (BadOperation, OperationRefused) as refusal:
        return str(refusal)
    return ""


def _key(repair: Repair) -> str:
    return f"logs-{repair.request}"
