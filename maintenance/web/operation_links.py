"""The case that follows an operation: opened with it from a finding, and linked from its page."""

from contextlib import suppress

from django.urls import reverse

from fleet.models import Node
from health.models import Finding
from maintenance import commands
from maintenance.models import NodeCase
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


def case_that_follows(node_uid: str) -> Follower | None:
    case = NodeCase.objects.open().of_node(node_uid).first()
    if case is None:
        return None
    reasons = dict.fromkeys(KINDS, case.reason) | {"test": "Test before the return.", "release": _pass_of(case)}
    return Follower(f"Case {case.pk} of {case.node_name}", reverse("case", args=[case.pk]), reasons)


def _pass_of(case: NodeCase) -> str:
    """Returns the validation that a release rests on, as its reason. Blank: none counts."""
    since = max(filter(None, (case.fault_at, case.repaired_at, case.failed_at)))
    return f"A validation passed, {to_the_minute(case.passed_at)}." if case.passed_at and case.passed_at > since else ""
