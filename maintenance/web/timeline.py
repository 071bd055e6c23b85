"""The lines of cases on a node's timeline."""

from collections.abc import Iterator

from django.urls import reverse

from fleet.history.lines import CASE, NodeKept, Span, TimelineLine, position_in
from maintenance.models import NodeCase
from people.models import AuditEntry, User


def lines_of_cases(node: NodeKept, user: User, span: Span) -> Iterator[TimelineLine]:
    """Yields the moves of the node's cases, the newest first. At most two queries."""
    if not span.has(CASE):
        return
    marks = {case.mark: case for case in NodeCase.objects.visible_to(user).of_node(node.uid)}
    if not marks:
        return
    entries = AuditEntry.objects.filter(span.of("at", "cases"), subject__in=marks).order_by("-at", "-pk")
    for entry in entries[: span.most]:
        case = marks[entry.subject]
        sentence = f"Case {case.pk}: {entry.verb.removeprefix('case.').replace('-', ' ')}. {entry.reason}"
        href, position = reverse("case", args=[case.pk]), position_in("cases", entry.pk)
        yield TimelineLine(entry.at, CASE, sentence, entry.actor, href, detail=entry.evidence, position=position)
