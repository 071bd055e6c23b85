"""Missing or faulty GPUs of a node for its page, as far as findings name them."""

from collections.abc import Iterator, Mapping

from django.http import HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils.html import format_html

from edges.parts import part_response
from edges.requests import PersonRequest
from fleet.models import Node
from fleet.web.node_gpus import Sickness
from health.correlation import EXPLAINED_BY
from health.inbox.queries import code_of, titles
from health.models import Finding
from health.rules.base import RANKS, Severity
from wording.lists import names

MISSING = "allocatable-below-expected"
GLYPHS = {Severity.CRITICAL: "bad", Severity.WARNING: "warn"}
UNKNOWN_GPU = "It is unknown which of these GPUs: no source names it."


@part_response
def node_which_gpus_part(request: PersonRequest, node_id: int) -> HttpResponse:
    row = get_object_or_404(Node.objects.visible_to(request.user), pk=node_id)
    return HttpResponse(format_html("{}", which_gpus(row)))


def which_gpus(node: Node) -> str:
    """Returns the text, from open and pending findings that may explain it, with one query."""
    rules = [rule for rule in EXPLAINED_BY[MISSING] if rule.startswith("gpu-")]
    found = Finding.objects.filter(node=node, rule__in=rules).notified().unresolved().order_by("subject", "rule")
    named: dict[str, list[str]] = {}
    for finding in found:
        named.setdefault(finding.subject.replace(f" of {node.name}", "", 1), []).append(titles()[finding.rule])
    if not named:
        return UNKNOWN_GPU
    return f"Findings name {names([f'{gpu} ({names(said)})' for gpu, said in named.items()], most=8)}."


def sicknesses_of(node: Node, uuids: Mapping[int, str]) -> Iterator[tuple[int, Sickness]]:
    """Yields open findings of its GPUs without notes, with one query."""
    rows = Finding.objects.filter(node=node).open().exclude(severity=Severity.NOTE).worst_first()
    for row in rows:
        index = row.gpu_among(uuids)
        if index is not None and index in uuids:
            href = f"{reverse('findings')}?finding={row.pk}"
            title, severity = code_of(row)[0] or titles().get(row.rule, row.rule), Severity(row.severity)
            yield index, Sickness(RANKS[severity], GLYPHS[severity], title, href)
