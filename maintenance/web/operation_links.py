"""The case that follows an operation: opened with it from a finding, and linked from its page."""

from collections.abc import Collection
from contextlib import suppress
from datetime import datetime

from django.db.models import Q
from django.urls import reverse

from fleet.models import Node
from health.models import Finding
from maintenance import commands
from maintenance.models import NodeCase
from maintenance.models.case import OVER
from maintenance.refusals import CaseRefused
from operations.followers import Follower
from operations.kinds import KINDS
from operations.models import Operation
from wording.instants import to_the_minute


def open_case_with(operation: Operation, node: Node, finding: Finding) -> None:
    """Opens a case of the finding's node. A node that has an open case keeps it."""
    with suppress(CaseRefused):
        commands.open_case(
            node, actor=operation.asked_by, reason=operation.reason, finding=finding, now=operation.asked_at
        )


def cases_that_follow(node_uids: Collection[str], at: datetime | None) -> dict[str, Follower]:
    """Returns the open case of each node. `at`: the case that was open then, else the one now. One query."""
    was_open = Q(state__in=OVER, opened_at__lte=at, state_since__gte=at) if at else Q(pk__in=())
    cases = NodeCase.objects.filter(~Q(state__in=OVER) | was_open, node_uid__in=node_uids).order_by("pk")
    found: dict[str, NodeCase] = {}
    for case in cases:
        if case.is_open and case.node_uid in found:
            continue  # the operation was asked for in the case before
        found[case.node_uid] = case
    return {uid: _follower(case) for uid, case in found.items()}


def _follower(case: NodeCase) -> Follower:
    reasons = dict.fromkeys(KINDS, case.reason) | {"test": "Test before the return.", "release": _pass_of(case)}
    return Follower(f"Case {case.pk} of {case.node_name}", reverse("case", args=[case.pk]), reasons)


def _pass_of(case: NodeCase) -> str:
    """Returns the validation that a release rests on, as its reason. Blank: none counts."""
    since = max(filter(None, (case.fault_at, case.repaired_at, case.failed_at)))
    return f"A validation passed, {to_the_minute(case.passed_at)}." if case.passed_at and case.passed_at > since else ""
