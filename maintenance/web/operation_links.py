"""The case that follows an operation: opened with it from a finding, and linked from its page."""

from contextlib import suppress

from django.urls import reverse

from fleet.models import Node
from health.models import Finding
from maintenance import commands
from maintenance.models import NodeCase
from maintenance.refusals import CaseRefused
from operations.followers import Follower
from operations.models import Operation


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
    return Follower(f"Case {case.pk} of {case.node_name}", reverse("case", args=[case.pk]), case.reason)
