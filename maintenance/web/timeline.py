"""The lines of cases on a node's timeline before their entries were domain events."""

from collections.abc import Iterator

from django.urls import reverse

from fleet.history.lines import CASE, NodeKept, Span, TimelineLine, position_in, without_event
from maintenance.models import NodeCase
from people.models import AuditEntry, User


def lines_of_cases(node: NodeKept, user: User, span: Span) -> Iterator[TimelineLine]:
    """Yields the entries of the node's cases of which no event has the node. At most two queries."""
    if not span.has(CASE):
        return
    cases = NodeCase.objects.visible_to(user).of_node(node.uid).filter(cluster=node.cluster_id)
    marks = {case.mark: case.pk for case in cases}
    if not marks:
        return
    entries = AuditEntry.objects.filter(span.of("at", "cases"), without_event(node, CASE), subject__in=marks)
    for entry in entries.order_by("-at", "-pk")[: span.most]:
        key = marks[entry.subject]
        sentence = f"Case {key}: {entry.verb.removeprefix('case.').replace('-', ' ')}. {entry.reason}"
        href, position = reverse("case", args=[key]), position_in("cases", entry.pk)
        yield TimelineLine(entry.at, CASE, sentence, entry.actor, href, detail=entry.evidence, position=position)
