"""The strip with a case's state and its next step, on the page of its node and on its finding."""

from typing import Any

from django.http import HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils import timezone

from edges.parts import part_response
from edges.requests import PersonRequest
from fleet.models import Cluster, Node
from fleet.web.node_lookup import node_for
from health.models import Finding
from health.rules.base import Severity
from maintenance.acts import acts_of
from maintenance.automatic_cases import automatic_case
from maintenance.lifecycle import CaseFacts, CaseState
from maintenance.models import NodeCase
from maintenance.probation import why_longer
from maintenance.queries import facts_of, wanted_test
from maintenance.repeat_offenders import results_for
from maintenance.triggers import VERSION, recommended_operation, trigger_of
from maintenance.web.states import GLYPHS
from people.rights import Permission, why_not


@part_response
def node_part(request: PersonRequest, node_id: int) -> HttpResponse:
    node = node_for(request, node_id)
    case = NodeCase.objects.of_node(node.uid).select_related("cluster", "finding").order_by("-pk").first()
    context = strip_of(case, node_id=node.pk) if case and case.is_open else {"node_id": node.pk, "last": case}
    context["cluster_id"] = node.cluster_id
    return render(request, "maintenance/_node_case.html", context | _rights(request, node.cluster))


@part_response
def finding_part(request: PersonRequest, finding_id: int) -> HttpResponse:
    finding = get_object_or_404(Finding.objects.visible_to(request.user).select_related("cluster"), pk=finding_id)
    node = Node.objects.filter(findings=finding).only("uid", "name", "is_ready").first()
    case = NodeCase.objects.open().of_node(node.uid).first() if node else None
    trigger = trigger_of(finding.rule, finding.xid) if node else None
    context = {
        "finding": finding, "node": node, "case": case, "kind": (kind := _kind_of(finding, node)),
        "also": _also_offered(finding, node, kind), "trigger": trigger, "rules_version": VERSION,
        "mended": results_for(finding, but=case) if trigger else {},
    }  # fmt: skip
    return render(request, "maintenance/_finding_case.html", context | _rights(request, finding.cluster))


def _kind_of(finding: Finding, node: Node | None) -> str:
    """Returns the kind of operation that the finding offers. Blank: none. No kubelet ends pods of a node not Ready."""
    kind = recommended_operation(finding.rule, finding.xid)
    return "quarantine" if kind == "drain" and node is not None and node.is_ready is not True else kind


def _also_offered(finding: Finding, node: Node | None, recommended: str) -> str:
    """Returns the kind that a person may choose for a critical finding beside what is recommended. Blank: none."""
    if node is None or finding.severity != Severity.CRITICAL or finding.resolved_at:
        return ""
    kind = "drain" if node.is_ready is True else "quarantine"
    return "" if kind == recommended else kind


def strip_of(case: NodeCase, *, node_id: int | None) -> dict[str, Any]:
    """Returns the context of the strip. `node_id` None: the node is gone."""
    facts = facts_of([case])[case.pk]
    acts = acts_of(facts)
    state = CaseState(case.state)
    return {
        "case": case,
        "facts": facts,
        "glyph": GLYPHS[state],
        "acts": [(act, number == 0 and _is_main(act.key, facts)) for number, act in enumerate(acts)],
        "node_id": node_id,
        "test": wanted_test(case),
        "why_longer": why_longer(case, now=timezone.now()),
        "automatic": automatic_case(case, facts, now=timezone.now())
        if facts.is_automatic and not case.is_new
        else None,
    }


def _is_main(act: str, facts: CaseFacts) -> bool:
    """Returns whether the first act is the next step. An actor that works by itself also answers by itself."""
    if act == "answer" and facts.repair:
        return not facts.repair.ends_at_deadline or facts.repair.is_overdue
    return act not in ("close", "retire", "take-over")


def _rights(request: PersonRequest, cluster: Cluster) -> dict[str, Any]:
    where = f"cluster {cluster.name}"
    return {"why_not": why_not(request.user, Permission.RUN, cluster_id=cluster.pk, where=where)}
