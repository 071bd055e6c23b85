"""The log bundle before a repair that loses the node's kernel log: collected first, and never waited for long (R13)."""

from datetime import datetime, timedelta
from typing import Any

import structlog
from django.db import transaction
from django.db.models import Q

from edges.transition_errors import IllegalMove, LostRace
from fleet.models import Node
from maintenance.actors.person import Person
from maintenance.lifecycle import NO_LOGS, RepairKind
from maintenance.models import Repair
from operations import commands as operations
from operations.lifecycle import NodeProgress, OperationState
from operations.models import Operation, OperationNode
from operations.refusals import BadOperation, OperationRefused

LOSING_LOGS = frozenset({RepairKind.REBOOT, RepairKind.GPU_RESET, RepairKind.HARDWARE})  # hardware needs the power off
WAITS_FOR = timedelta(minutes=6)  # the deadline of a bundle, and the deletion of its pod
FIRST = "The logs of the node are collected first."
WAIT_FOR_LOGS = "Wait for the logs: they are being collected."  # to a person, whom nothing holds back
LATE = "The logs were not there before the repair, so their collection was cancelled."
PREFIX = "logs-"  # of the key of a bundle's operation, before the id of the request
OPEN = (OperationState.PROPOSED, OperationState.RUNNING, OperationState.PAUSED)
log = structlog.get_logger()


def collect_logs_for_people(*, now: datetime) -> None:
    """Starts the bundles of repairs that people do, since no worker asks them, and ends bundles that are too late.

    The case says while they run. Two queries without such a repair. One failure does not stop the others.
    """
    keys = Operation.objects.filter(state__in=OPEN, key__startswith=PREFIX).values_list("key", flat=True)
    wanted = Q(ended_at=None, by=Person.key, kind__in=LOSING_LOGS, asked_at__gt=now - WAITS_FOR)
    said = Q(ended_at=None, by=Person.key, says=WAIT_FOR_LOGS)
    rows = Repair.objects.filter(wanted | said | Q(request__in=[key.removeprefix(PREFIX) for key in keys]))
    for repair in rows.select_related("case__cluster"):
        try:
            says = WAIT_FOR_LOGS if collect_logs(repair, now=now) else ""
        except Exception:
            log.exception("the logs before a repair are not collected", repair=repair.pk)
            says = ""
        if repair.by == Person.key and repair.says != says:
            Repair.objects.filter(pk=repair.pk, answer="").update(says=says)


def collect_logs(repair: Repair, *, now: datetime) -> str:
    """Starts the bundle of a repair once. The case records why there is none.

    Returns why its actor is not asked yet. Blank: the logs are there, there are none, or they took too long.
    """
    if repair.kind not in LOSING_LOGS:
        return ""
    bundle = (
        OperationNode.objects.of_kinds("logs").filter(operation__key=_key(repair)).select_related("operation").first()
    )
    if bundle is not None:
        if bundle.state not in (NodeProgress.PENDING, NodeProgress.RUNNING):
            return ""
        is_late = repair.ended_at is not None or now - bundle.operation.asked_at >= WAITS_FOR
        return "" if is_late and _end(bundle.operation, repair, now=now) else FIRST
    if repair.case.moves.filter(verb=f"case.{NO_LOGS}", evidence__repair=repair.pk).exists():
        return ""
    if why_none := _start(repair, now=now):
        _record(repair, why_none, now=now)
        return ""
    return FIRST


def _end(bundle: Operation, repair: Repair, *, now: datetime) -> bool:
    """Cancels the bundle: a log from after the repair is no evidence from before it. False: it just moved."""
    try:
        with transaction.atomic():
            operations.cancel(bundle, actor=repair.asked_by, reason=LATE, now=now)
            _record(repair, LATE, now=now)
    except (IllegalMove, LostRace):
        return False
    return True


def _record(repair: Repair, why_none: str, *, now: datetime) -> None:
    given: dict[str, Any] = {"actor": repair.asked_by, "evidence": {"repair": repair.pk}, "now": now}
    repair.case.record(NO_LOGS, reason=why_none, **given)


def _start(repair: Repair, *, now: datetime) -> str:
    """Starts the bundle. Returns why it does not start; blank: it does."""
    case = repair.case
    node = Node.objects.filter(cluster=case.cluster_id, uid=case.node_uid).first()
    if node is None:
        return "The node is not seen in its cluster."
    what = "hardware repair" if repair.kind == RepairKind.HARDWARE else repair.kind.replace("-", " ")
    reason = f"Before the {what}: it may lose the logs of the node."
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
    return f"{PREFIX}{repair.request}"
