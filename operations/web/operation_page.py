"""The pages of one operation: its preview with the form that starts it, and its live progress."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

from django import forms
from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_POST

from edges.fields import Reason, WholeNumber
from edges.idempotency import why_no_key
from edges.kept_input import BadForm, reason_of
from edges.parts import part_response
from edges.requests import PersonRequest, report_act
from edges.transition_errors import IllegalMove, LostRace
from fleet.models import Cluster, Node
from health.models import Finding
from operations import commands
from operations.drain_offers import drain_offers_of
from operations.eviction_trials import trial_of
from operations.followers import follower_of, followers_of
from operations.impact import OperationImpact, is_dry_run, vetoes_of
from operations.kinds import KINDS
from operations.lifecycle import NodeProgress, OperationState
from operations.models import Operation
from operations.refusals import BadOperation, OperationRefused
from operations.steps import OPTIONS, STEPS
from operations.steps.options import StepOption
from operations.web.option_fields import field_of, name_of, shown_value, value_of
from people.rights import NotAllowed, Permission, require, scope_of, why_not
from people.sign_in.step_up import require_recent_sign_in
from wording.lists import names
from wording.numbers import count

VERBS = {
    "approve": (commands.approve, Permission.APPROVE, "Approved. A worker starts it."),
    "pause": (commands.pause, Permission.STOP, "Paused: Quarterdeck changes no more nodes."),
    "resume": (commands.resume, Permission.RUN, "Resumed."),
    "retry": (commands.retry, Permission.RUN, "Failed nodes start again."),
    "cancel": (commands.cancel, Permission.STOP, "Cancelled. Quarantined nodes stay quarantined."),
}
REFUSALS = (BadForm, NotAllowed, OperationRefused, IllegalMove, LostRace)
SHOWN = 200  # nodes; all are in REST
OF_CASES = "new-case-operation"  # name of the form's second address, which cases and findings link to
PAGES = {OF_CASES: "case-operation", "case-operation-verb": "case-operation"}  # the operation's page, by address
LONGEST_LINKED = 320  # characters of an option that a link fills
FRESH_FOR = timedelta(minutes=2)  # an older preview is shown again, if the impact changed
DIALOGS = (
    ("approve", "Approve", "A worker starts it on these nodes. Whoever asked for it cannot approve it."),
    ("pause", "Pause", "Quarterdeck changes no more nodes. Evicted pods still end."),
    ("resume", "Resume", "The remaining nodes start again."),
    ("retry", "Retry failed nodes", "Failed nodes start again from their first step."),
    ("cancel", "Cancel", "Unfinished nodes are left as they are. Quarantined nodes stay quarantined."),
)


class OperationForm(forms.Form):
    reason = Reason()
    typed_count = WholeNumber(
        required=False, label="Number of nodes, to confirm", min_value=1, max_value=commands.MOST_NODES
    )
    finding = WholeNumber(required=False, min_value=1, max_value=2**53, widget=forms.HiddenInput)
    key = forms.CharField(required=False, max_length=100)
    seen = forms.CharField(required=False, max_length=2000)  # the impact that the page showed
    seen_at = forms.FloatField(required=False)  # and when, in seconds

    def __init__(self, *given: Any, kind: str = "", **more: Any) -> None:
        """Has the fields of the kind's options. Blank: of all kinds."""
        super().__init__(*given, **more)
        self.taken = options_of(kind) if kind else tuple(OPTIONS.values())
        self.fields.update({name_of(option): field_of(option) for option in self.taken})

    def clean_key(self) -> str:
        if why := why_no_key(self.cleaned_data["key"]):
            raise forms.ValidationError(why)
        return str(self.cleaned_data["key"])

    @property
    def shown(self) -> list[tuple[forms.BoundField, bool]]:
        """Returns the fields of its options, each with whether it is wide."""
        return [(self[name_of(option)], getattr(option, "is_wide", False)) for option in self.taken]

    @property
    def options(self) -> dict[str, Any]:
        given = {name: value_of(option, self.cleaned_data) for name, option in OPTIONS.items()}
        finding = self.cleaned_data["finding"]
        return given | ({"finding": finding} if finding else {})


def options_of(kind: str) -> tuple[StepOption, ...]:
    return tuple(option for key in KINDS[kind].steps for option in STEPS[key].options)


def new_operation(request: PersonRequest) -> HttpResponse:
    """Shows the impact of an operation, and starts it when the form is sent."""
    sent = request.POST if request.method == "POST" else request.GET
    kind = sent.get("kind", "")
    if kind not in KINDS:
        raise Http404(f"Choose one of {', '.join(KINDS)}.")
    try:
        cluster, nodes, missing = _chosen(request, [*sent.getlist("node"), *sent.get("nodes", "").split(",")])
    except BadOperation as refusal:
        messages.error(request, str(refusal))
        return redirect(f"{reverse('fleet')}#nodes")
    now = timezone.now()
    actor = request.user.get_username()
    named = {option.name: sent.get(option.name, "") for option in options_of(kind) if option.in_preview}
    impact = commands.preview(cluster, kind, nodes, actor=actor, now=now, options=named)
    form = _form(kind, request, nodes)
    reason = why_not(request.user, Permission.RUN, cluster_id=cluster.pk, where=f"cluster {cluster.name}")
    status = 200
    if form.is_bound and not form.is_valid():
        status = 400
    elif form.is_bound:
        try:
            require(request.user, Permission.RUN, cluster_id=cluster.pk, where=f"cluster {cluster.name}")
            if not is_dry_run(KINDS[kind].steps):
                _require_same_impact(form, impact, missing, now=now)
            given = {name: form.cleaned_data[name] for name in ("reason", "typed_count", "key")}
            given["seen"] = _seen_exactly(form, kind)
            operation = commands.start(cluster, kind, nodes, actor=actor, options=form.options, now=now, **given)
        except (NotAllowed, OperationRefused) as refusal:
            for problem in getattr(refusal, "problems", [{"field": None, "sentence": str(refusal)}]):
                form.add_error(problem["field"] if problem["field"] in form.fields else None, problem["sentence"])
            status = 409
        else:
            messages.success(request, f"Started: {operation.summary}.")
            follower = follower_of(nodes[0].uid) if len(nodes) == 1 and KINDS[kind].shows_case else None
            if follower and operation.state == OperationState.RUNNING:
                return redirect(follower.address)
            return redirect(_page_of(request), operation_id=operation.pk)
    context = {
        "kind": kind, "title": _title_of(kind, form, nodes), "cluster": cluster, "nodes": nodes[:SHOWN],
        "more": max(0, len(nodes) - SHOWN), "impact": impact, "form": form, "key": uuid4().hex,
        "read_at": now, "missing": missing, "all_nodes": ",".join(str(node.pk) for node in nodes),
        "without_vetoes": _without_vetoes(kind, nodes), "explanation": KINDS[kind].explanation,
        "trial": trial_of(cluster, nodes, now=now) if KINDS[kind].trial else None, "try_first": KINDS[kind].trial,
        "why_not": reason or " ".join(impact.vetoes[:1]),
        "follower": follower_of(nodes[0].uid) if len(nodes) == 1 and impact.vetoes else None,
        "most_nodes": KINDS[kind].most_nodes, "of": KINDS[kind].of, "back": _address_before(request, nodes),
    }  # fmt: skip
    return render(request, "operations/new.html", context, status=status)


def _form(kind: str, request: PersonRequest, nodes: Sequence[Node]) -> OperationForm:
    if request.method != "POST":
        finding = _finding_of(request, nodes)
        follower = follower_of(nodes[0].uid) if len(nodes) == 1 else None
        given_reason = follower.reasons.get(kind, "") if follower else request.GET.get("reason", "")[:1000]
        reason = finding.title if finding else given_reason
        given = {"finding": finding and finding.pk, "reason": reason}
        suggested = {name: value for key in KINDS[kind].steps for name, value in STEPS[key].suggest(nodes).items()}
        for option in options_of(kind):
            if option.is_linked:
                given[name_of(option)] = request.GET.get(option.name, "")[:LONGEST_LINKED]
            elif option.name in suggested:
                given[name_of(option)] = shown_value(option, suggested[option.name])
        return OperationForm(initial=given, kind=kind)
    return OperationForm(request.POST, kind=kind)


def _title_of(kind: str, form: OperationForm, nodes: Sequence[Node]) -> str:
    """Returns the title, with the case that is opened with it. A node that has an open case keeps it."""
    title = KINDS[kind].title
    if not form["finding"].value() or (len(nodes) == 1 and follower_of(nodes[0].uid)):
        return title
    return f"Open a case, quarantine and {title.lower()}" if kind == "drain" else f"Open a case and {title.lower()}"


def _address_before(request: PersonRequest, nodes: Sequence[Node]) -> str:
    """Returns where the person came from: the finding, the case, or the operations."""
    match = request.resolver_match
    if match is None or match.url_name != OF_CASES:
        return reverse("operations")
    if finding := _finding_of(request, nodes):
        return f"{reverse('findings')}?finding={finding.pk}"
    follower = follower_of(nodes[0].uid)
    return follower.address if follower else reverse("maintenance")


def _page_of(request: PersonRequest) -> str:
    """Returns the name of the operation's address in the section that the person is in."""
    return PAGES.get(request.resolver_match.url_name or "" if request.resolver_match else "", "operation")


def _finding_of(request: PersonRequest, nodes: Sequence[Node]) -> Finding | None:
    """Returns the finding that the person came from. None: none that is about one of the nodes."""
    key = request.GET.get("finding", "")
    if not (key.isascii() and key.isdecimal() and len(key) < 16):
        return None
    return Finding.objects.visible_to(request.user).filter(pk=int(key), node__in=nodes).first()


def _require_same_impact(form: OperationForm, impact: OperationImpact, missing: int, *, now: datetime) -> None:
    """:raises OperationRefused: when the person has to look at the impact again"""
    if missing:
        left = f"{count(missing, 'chosen node')} left since the preview."
        raise OperationRefused(f"{left} Check the impact, then start again.")
    seen, seen_at = form.cleaned_data["seen"], form.cleaned_data["seen_at"]
    is_old = seen_at is not None and now.timestamp() - seen_at > FRESH_FOR.total_seconds()
    if is_old and seen != impact.sentence:
        raise OperationRefused(f"The impact changed since you saw it. It was: {seen} Check it, then start again.")


def _seen_exactly(form: OperationForm, kind: str) -> str:
    """Returns the impact that the start compares, however new it is. Blank: the kind needs no such comparison."""
    return form.cleaned_data["seen"] if any(STEPS[key].needs_seen for key in KINDS[kind].steps) else ""


def _without_vetoes(kind: str, nodes: Sequence[Node]) -> str:
    """Returns the keys of the nodes that may be changed, where some may not. Blank: all may, or none."""
    vetoes = vetoes_of(nodes, KINDS[kind].steps)
    return ",".join(str(node.pk) for node in nodes if node.uid not in vetoes) if vetoes else ""


def _chosen(request: PersonRequest, keys: Sequence[str]) -> tuple[Cluster, list[Node], int]:
    """Returns the cluster, the chosen nodes, and how many of them are gone. Without any node it answers 404.

    :raises BadOperation: when they are too many, or of several clusters
    """
    ids = {int(key) for key in keys if key.isascii() and key.isdecimal() and len(key) < 12}
    if len(ids) > commands.MOST_NODES:
        most, chosen = f"{commands.MOST_NODES:,}", f"{len(ids):,}"
        raise BadOperation(("nodes", f"At most {most} nodes at once. You chose {chosen}: choose fewer."))
    visible = Node.objects.visible_to(request.user).filter(pk__in=ids).select_related("cluster")
    nodes = sorted(visible, key=lambda node: node.name)
    if not nodes:
        raise Http404("All chosen nodes have left the cluster. Choose again.")
    if len(clusters := sorted({node.cluster.name for node in nodes})) > 1:
        raise BadOperation(
            ("nodes", f"The chosen nodes belong to several clusters: {names(clusters)}. Choose nodes of one cluster.")
        )
    return nodes[0].cluster, nodes, len(ids) - len(nodes)


def operation(request: PersonRequest, operation_id: int) -> HttpResponse:
    return render(request, "operations/page.html", _context(request, operation_id) | {"dialogs": DIALOGS})


@part_response
def operation_part(request: PersonRequest, operation_id: int) -> HttpResponse:
    return render(request, "operations/_body.html", _context(request, operation_id))


@require_POST
def carry_out(request: PersonRequest, operation_id: int, verb: str) -> HttpResponse:
    row = _load(request, operation_id)
    if verb not in VERBS:
        raise Http404(f"Choose one of {', '.join(VERBS)}.")
    act, permission, done = VERBS[verb]
    if permission is Permission.APPROVE:
        require_recent_sign_in(request)
    with report_act(request, REFUSALS, done=done, ends_form=True):
        require(request.user, permission, cluster_id=row.cluster_id, where=f"cluster {row.cluster.name}")
        given = {"seen": request.POST.get("seen", "")[:2000]} if verb == "approve" else {}
        act(row, actor=request.user.get_username(), reason=reason_of(request), now=timezone.now(), **given)
    return redirect(_page_of(request), operation_id=operation_id)


def _load(request: PersonRequest, operation_id: int) -> Operation:
    visible = Operation.objects.visible_to(request.user).select_related("cluster")
    return get_object_or_404(visible, pk=operation_id)


def _context(request: PersonRequest, operation_id: int) -> dict[str, Any]:
    row = _load(request, operation_id)
    nodes = list(row.nodes.worst_first()[:SHOWN])
    is_paused = row.state == OperationState.PAUSED
    counts = Counter(row.nodes.values_list("state", flat=True))
    ids = Node.objects.visible_to(request.user).filter(uid__in=[node.node_uid for node in nodes])
    keys = dict(ids.values_list("uid", "pk"))
    followers = followers_of(row, [node.node_uid for node in nodes])
    name = request.resolver_match.url_name or "" if request.resolver_match else ""
    of_case = "case-" if name.startswith("case-") else ""
    return {
        "operation": row,
        "title": row.summary,
        "caution": KINDS[row.kind].caution if row.kind else "",
        "progress_template": next((STEPS[key].template for key in row.steps if STEPS[key].template), ""),
        "nodes": [(node, keys.get(node.node_uid), followers.get(node.node_uid)) for node in nodes],
        "part_url": f"{of_case}operation-part",
        "verb_url": f"{of_case}operation-verb",
        "offers": drain_offers_of(nodes[0], ids.first(), now=timezone.now()) if len(nodes) == 1 else (),
        "follower": followers.get(nodes[0].node_uid) if len(nodes) == 1 else None,
        "is_of_case": bool(of_case),
        "more": max(0, counts.total() - SHOWN),
        "counts": {state.value: counts[state] for state in NodeProgress if counts[state]},
        "total": counts.total(),
        "finished": counts[NodeProgress.DONE] + counts[NodeProgress.FAILED] + counts[NodeProgress.CANCELLED],
        "failed": counts[NodeProgress.FAILED],
        "may_run": scope_of(request.user, Permission.RUN).covers_cluster(row.cluster_id),
        "may_stop": scope_of(request.user, Permission.STOP).covers_cluster(row.cluster_id),
        "impact": commands.impact_now(row, now=timezone.now()) if row.state == OperationState.PROPOSED else None,
        "why_not_approve": _why_not_approve(row, request),
        "follow_up": KINDS[KINDS[row.kind].follow_up] if row.kind and KINDS[row.kind].follow_up else None,
        "follow_up_nodes": _nodes_of_finished(row, keys),
        "is_proposed": row.state == OperationState.PROPOSED,
        "is_running": row.state == OperationState.RUNNING,
        "is_paused": is_paused,
        "may_retry": counts[NodeProgress.FAILED]
        and row.state != OperationState.CANCELLED
        and not (is_paused and commands.paused_by(row)),
    }


def _nodes_of_finished(row: Operation, keys: Mapping[str, int]) -> str:
    """Returns the keys of the nodes of a finished operation, for what follows. Blank: not all are shown."""
    is_over = row.state == OperationState.FINISHED
    return ",".join(map(str, keys.values())) if is_over and len(keys) == row.nodes.count() else ""


def _why_not_approve(row: Operation, request: PersonRequest) -> str:
    where = f"cluster {row.cluster.name}"
    refusal = why_not(request.user, Permission.APPROVE, cluster_id=row.cluster_id, where=where)
    is_own = row.asked_by == request.user.get_username()
    return refusal or ("You asked for this operation: another person approves it." if is_own else "")
