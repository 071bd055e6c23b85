"""The lines of operations on a node's timeline."""

from collections.abc import Iterator

from django.urls import reverse

from fleet.history.lines import OPERATION, NodeKept, Span, TimelineLine, position_in
from operations.kinds import title_of
from operations.models import OperationNode
from people.models import User


def lines_of_operations(node: NodeKept, user: User, span: Span) -> Iterator[TimelineLine]:
    """Yields the operations on the node, each at its last change, the newest first. One query."""
    if not span.has(OPERATION):
        return
    rows = OperationNode.objects.visible_to(user).filter(span.of("state_since", "operations"), node_uid=node.uid)
    for row in rows.select_related("operation").order_by("-state_since", "-pk")[: span.most]:
        title = title_of(row.operation.kind)
        sentence = f"{title}: {row.state}. {row.reason or row.operation.reason}"
        href, position = reverse("operation", args=[row.operation_id]), position_in("operations", row.pk)
        yield TimelineLine(row.state_since, OPERATION, sentence, row.operation.asked_by, href, position=position)
