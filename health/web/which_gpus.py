"""Which GPUs of a node are missing, as far as findings say it: for the sentence of its page that says how many are."""

from django.http import HttpResponse
from django.shortcuts import get_object_or_404
from django.utils.html import format_html

from edges.parts import part
from edges.requests import PersonRequest
from fleet.models import Node
from health.correlation import EXPLAINED_BY
from health.inbox.reading import titles
from health.models import Finding
from wording.lists import names

MISSING = "allocatable-below-expected"
NOBODY_SAYS = "Which of them is not known: nothing that is read here names it."


@part
def node_which_gpus_part(request: PersonRequest, node_id: int) -> HttpResponse:
    row = get_object_or_404(Node.objects.visible_to(request.user), pk=node_id)
    return HttpResponse(format_html("{}", which_gpus(row)))


def which_gpus(node: Node) -> str:
    """By the findings that may explain it, opened or not. One query."""
    rules = [rule for rule in EXPLAINED_BY[MISSING] if rule.startswith("gpu-")]
    found = Finding.objects.filter(node=node, rule__in=rules).told().unresolved().order_by("subject", "rule")
    named: dict[str, list[str]] = {}
    for finding in found:
        named.setdefault(finding.subject.replace(f" of {node.name}", "", 1), []).append(titles()[finding.rule])
    if not named:
        return NOBODY_SAYS
    return f"Findings name {names([f'{gpu} ({names(said)})' for gpu, said in named.items()], most=8)}."
