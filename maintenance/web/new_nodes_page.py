"""The pages of the gate of new nodes: all pools, and one pool with its settings and the nodes that it holds."""

from typing import Any

from django import forms
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods

from edges.fields import Reason
from edges.requests import PersonRequest, report_act
from fleet.models import Pool
from maintenance.models import NodeCase
from maintenance.new_node_settings import (
    GATE_TESTS,
    LONGEST_WANTED,
    MOST_WANTED,
    GateSettings,
    set_gate,
    settings_version,
)
from maintenance.new_nodes import unheld_nodes
from maintenance.refusals import BadNewNodeGate, CaseRefused
from operations.test_jobs.node_tests import NODE_TESTS
from people.rights import NotAllowed, Permission, require, why_not

SHOWN = 100  # pools, and nodes of one pool; all are in REST
LONGEST_LIST = MOST_WANTED * (LONGEST_WANTED + 2)


class NewNodeGateForm(forms.Form):
    is_on = forms.BooleanField(
        required=False,
        label="Hold new nodes",
        help_text="Only nodes that join from now on. Nodes in service stay there.",
    )
    test = forms.ChoiceField(
        choices=[(key, NODE_TESTS[key].title) for key in GATE_TESTS], label="Test workload", help_text="On all GPUs."
    )
    labels = forms.CharField(
        max_length=LONGEST_LIST, required=False, widget=forms.Textarea({"rows": 3}), label="Labels",
        help_text="One a line: key or key=value.",
    )  # fmt: skip
    taints = forms.CharField(
        max_length=LONGEST_LIST, required=False, widget=forms.Textarea({"rows": 2}), label="Taints",
        help_text="One a line: key:Effect or key=value:Effect.",
    )  # fmt: skip
    needs_person = forms.BooleanField(
        required=False, label="A person releases", help_text="Off: a node that passed is released automatically."
    )
    seen = forms.CharField(max_length=40, required=False, widget=forms.HiddenInput)
    reason = Reason()


def pools(request: PersonRequest) -> HttpResponse:
    visible = Pool.objects.visible_to(request.user).select_related("cluster", "new_node_gate")
    shown = list(visible.order_by("cluster__name", "name")[: SHOWN + 1])
    rows = [(pool, getattr(pool, "new_node_gate", None)) for pool in shown[:SHOWN]]
    return render(
        request, "maintenance/new_nodes/list.html", {"rows": rows, "is_more": len(shown) > SHOWN, "most": SHOWN}
    )


@require_http_methods(["GET", "HEAD", "POST"])
def pool(request: PersonRequest, pool_id: int) -> HttpResponse:
    """Shows the gate of a pool, and sets it when the form is sent."""
    visible = Pool.objects.visible_to(request.user).select_related("cluster", "new_node_gate")
    row = get_object_or_404(visible, pk=pool_id)
    gate, where = getattr(row, "new_node_gate", None), f"cluster {row.cluster.name}"
    form = NewNodeGateForm(request.POST if request.method == "POST" else None, initial=_initial(gate))
    if form.is_bound and form.is_valid():
        try:
            with report_act(request, (NotAllowed, CaseRefused), done="The gate is set.", ends_form=True):
                require(request.user, Permission.ADMINISTER, cluster_id=row.cluster_id, where=where)
                given = dict(form.cleaned_data)
                wanted = {name: _lines(given[name]) for name in ("labels", "taints")}
                asked = GateSettings(given["is_on"], given["test"], needs_person=given["needs_person"], **wanted)
                by = request.user.get_username()
                set_gate(row, asked, actor=by, reason=given["reason"], seen=given["seen"], now=timezone.now())
        except BadNewNodeGate as bad:
            for problem in bad.problems:
                form.add_error(problem["field"], problem["sentence"])
        else:
            return redirect("new-node-gate", pool_id=pool_id)
    held = NodeCase.objects.visible_to(request.user).filter(is_new=True, gate__pool=row)
    context: dict[str, Any] = {
        "unheld": unheld_nodes(gate, most=SHOWN, now=timezone.now()) if gate else [],
        "pool": row, "gate": gate, "form": form, "cases": held.order_by("-pk")[:SHOWN],
        "test": NODE_TESTS[gate.test].title if gate else "",
        "why_not": why_not(request.user, Permission.ADMINISTER, cluster_id=row.cluster_id, where=where),
    }  # fmt: skip
    return render(request, "maintenance/new_nodes/page.html", context, status=400 if form.errors else 200)


def _initial(gate: Any) -> dict[str, Any]:
    if gate is None:
        return {"seen": settings_version(None)}
    shared: dict[str, Any] = {
        "seen": settings_version(gate),
        "is_on": gate.on_since is not None,
        "test": gate.test,
        "needs_person": gate.needs_person,
    }
    return shared | {"labels": "\n".join(gate.labels), "taints": "\n".join(gate.taints)}


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]
