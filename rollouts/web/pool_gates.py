"""The page with the gates of new plans on the nodes of a pool: text, preview, change and undo."""

from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone

from edges.documents import LARGEST_BYTES
from edges.fields import Reason
from edges.requests import PersonRequest
from fleet.models import Pool
from people.rights import NotAllowed, why_not
from rollouts.commands.added_gates import usual_options
from rollouts.commands.documents import gates_as_yaml, parse_gates
from rollouts.commands.pool_gates import LENGTH, MAY, change_gates, preview_gates, with_gate
from rollouts.commands.refusals import BadPlan, Refusal
from rollouts.gates import GATES
from rollouts.queries.pool_gates import PoolOptions, gates_of


class GatesForm(forms.Form):
    text = forms.CharField(required=False, max_length=LARGEST_BYTES, widget=forms.Textarea, strip=False)
    reason = Reason(label="Reason (stored permanently)", required=False)
    seen = forms.CharField(required=False, max_length=LENGTH)


def pool_gates(request: PersonRequest, pool_id: int) -> HttpResponse:
    """Shows the gates, previews a change, and writes it on a request with the mark of the preview."""
    pool = get_object_or_404(Pool.objects.visible_to(request.user).select_related("cluster"), pk=pool_id)
    if request.method != "POST":
        try:
            return _page(request, pool, _proposed(request, pool), {})
        except BadPlan as refusal:  # an option of an earlier version
            return _page(request, pool, None, {"problems": refusal.problems})
    form = GatesForm(request.POST)
    text = request.POST.get("text", "")[:LARGEST_BYTES]
    if not form.is_valid():
        return _page(request, pool, None, {"text": text, "refusal": "The text is too long."}, 400)
    seen, reason, given = form.cleaned_data["seen"], form.cleaned_data["reason"], {"text": text}
    try:
        options = parse_gates(form.cleaned_data["text"].replace("\r\n", "\n"))
        if not seen:
            return _page(request, pool, options, given)
        change_gates(pool, options, seen=seen, actor=request.user, reason=reason, now=timezone.now())
    except BadPlan as refusal:
        return _page(request, pool, None, {**given, "problems": refusal.problems}, 400)
    except NotAllowed as refusal:
        return _page(request, pool, None, {**given, "refusal": str(refusal)}, 403)
    except Refusal as refusal:
        return _page(request, pool, options, {**given, "refusal": str(refusal)}, 409)
    messages.success(request, f"New plans of pool {pool.name} have these gates. Existing plans keep their gates.")
    return redirect("pool-gates", pool_id=pool.pk)


def _proposed(request: PersonRequest, pool: Pool) -> PoolOptions | None:
    """Returns the gates that a link proposes: one more gate, or those before the last change. None: no proposal."""
    row = gates_of(pool)
    if "undo" in request.GET:
        return row.previous if row else None
    gate = request.GET.get("add", "")
    return with_gate(pool, gate, usual_options(gate)) if gate in GATES else None


def _page(
    request: PersonRequest, pool: Pool, options: PoolOptions | None, context: dict[str, Any], status: int = 200
) -> HttpResponse:
    row = gates_of(pool)
    current: PoolOptions = row.options if row else {}
    where = f"cluster {pool.cluster.name}"
    shown = {
        "pool": pool,
        "row": row,
        "text": gates_as_yaml(current if options is None else options),
        "preview": preview_gates(pool, options) if options is not None else None,
        "why_not": why_not(request.user, MAY, cluster_id=pool.cluster_id, where=where),
    }
    return render(request, "rollouts/pool_gates/page.html", shown | context, status=status)
