"""The page of one approval: what will happen, the evidence, and the decision."""

from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone

from edges.kept_input import BadForm, cleaned_input
from edges.parts import part_response
from edges.requests import PersonRequest, text_of
from edges.transition_errors import IllegalMove, LostRace
from fleet.allocation.physical import physical_of
from fleet.freshness.cluster import load_cluster_freshness
from fleet.models import Node, Pod
from fleet.web.node_gpus import allocated_to
from gpu.resources import Layout
from people.models import User
from people.rights import NotAllowed, Permission, require
from people.sign_in.step_up import require_recent_sign_in
from rollouts.approvals.approvers import gate_of
from rollouts.approvals.bundles import bundle_for
from rollouts.approvals.decisions import Awaited, awaited, waiting_for_approval, why_a_reason, why_no_decision
from rollouts.approvals.shown_bundles import changed_since, show
from rollouts.commands import plan_approvals
from rollouts.commands.refusals import ReasonNeeded, Refusal
from rollouts.lifecycle import TargetState
from rollouts.models import Stage, Verb
from rollouts.preflight.canary_proof import proof_for
from rollouts.preflight.live_checks.latest import live_on_page, why_no_live_check_by
from rollouts.preflight.remaining_nodes import ahead_of
from rollouts.web.approval_table import table_of
from rollouts.web.command_forms import DecisionForm
from rollouts.web.shown_evidence import Look, recall, remember
from rollouts.web.visible_objects import stage_for

DECISIONS = {"approve": plan_approvals.approve, "reject": plan_approvals.reject}


def approval(request: PersonRequest, stage_id: int) -> HttpResponse:
    stage = stage_for(request.user, stage_id)
    if request.method == "POST" and request.POST.get("decision") != "look":
        return _post_decision(request, stage)
    now = timezone.now()
    return _page(request, stage, look=remember(request, show(stage, now=now), now=now))


@part_response
def ahead_part(request: PersonRequest, stage_id: int) -> HttpResponse:
    stage = stage_for(request.user, stage_id)
    return render(request, "rollouts/approval/_ahead.html", _ahead(request, stage))


@part_response
def live_part(request: PersonRequest, stage_id: int) -> HttpResponse:
    stage = stage_for(request.user, stage_id)
    context = _evidence(request, stage, recall(request, request.GET.get("look", "")))
    return render(request, "rollouts/approval/_live.html", context)


def _post_decision(request: PersonRequest, stage: Stage) -> HttpResponse:
    """Records the decision. If it is refused, the page shows the input and what has changed."""
    plan, form = stage.plan, DecisionForm(request.POST)
    look = recall(request, request.POST.get("look", ""))
    try:
        require(request.user, Permission.APPROVE, cluster_id=plan.cluster_id, where=f"cluster {plan.cluster.name}")
        given = cleaned_input(form)
        if given["decision"] == "approve":
            require_recent_sign_in(request)
        decide = DECISIONS[given.pop("decision")]
        decide(stage, actor=request.user, **given, now=timezone.now())
    except BadForm:
        return _page(request, stage_for(request.user, stage.pk), look=look, form=form, status=409)
    except ReasonNeeded as refusal:
        form.add_error("reason", str(refusal))
        return _page(request, stage_for(request.user, stage.pk), look=look, form=form, status=409)
    except (IllegalMove, LostRace, NotAllowed, Refusal) as refusal:
        stage = stage_for(request.user, stage.pk)
        if form.is_valid() and _is_decided_so(request.user, stage, form.cleaned_data):
            return _decided(request, stage)
        return _page(request, stage, look=look, form=form, refusal=str(refusal), status=409)
    return _decided(request, stage)


def _decided(request: PersonRequest, stage: Stage) -> HttpResponse:
    messages.success(request, f"Your decision on {stage.name} is recorded.")
    return redirect("plan", plan_id=stage.plan_id)


def _is_decided_so(user: User, stage: Stage, given: dict[str, str]) -> bool:
    is_rejection = given["decision"] == "reject"
    mine = stage.approvals.standing().filter(by=user.get_username(), is_rejection=is_rejection)
    if not is_rejection:  # a rejection applies to the present bundle
        mine = mine.filter(bundle_hash=given["bundle_hash"])
    return mine.filter(reason=given["reason"]).exists()


def _page(
    request: PersonRequest,
    stage: Stage,
    *,
    look: Look | None,
    form: DecisionForm | None = None,
    refusal: str = "",
    status: int = 200,
) -> HttpResponse:
    """Renders the page. `form` is a refused decision."""
    written = form or DecisionForm(initial={"reason": text_of(request, "reason")})
    context = _change_context(stage) | _ahead(request, stage) | _evidence(request, stage, look)
    context |= {"refusal": refusal, "form": written}
    return render(request, "rollouts/approval/page.html", context, status=status)


def _change_context(stage: Stage) -> dict[str, Any]:
    cluster = stage.plan.cluster
    targets = list(stage.targets.exclude(state=TargetState.EXCLUDED).order_by("position"))
    nodes = Node.objects.filter(cluster=cluster, uid__in=[target.node_uid for target in targets])
    pods = Pod.objects.filter(cluster=cluster, node__in=nodes, deleted_at=None).tenants().not_done()
    return {
        "observation": load_cluster_freshness(cluster, now=timezone.now()).observation,
        "targets": targets,
        "physical": physical_of(nodes),
        "pods": [(pod, _allocated_gpus(pod)) for pod in pods.select_related("node").order_by("namespace", "name")],
        "needed": gate.people if (gate := gate_of(stage)) else 1,
        "decisions": stage.approvals.all(),
        "proof": proof_for(stage),
        "started": stage.plan.commands.filter(verb=Verb.START).first(),
    }


def _ahead(request: PersonRequest, stage: Stage) -> dict[str, Any]:
    """Returns the checks of the remaining nodes now; none if the stage waits for nobody."""
    plan, closed = stage.plan, why_no_decision(stage)
    return {
        "stage": stage,
        "plan": plan,
        "closed": closed,
        "ahead": None if closed else ahead_of(stage, now=timezone.now()),
        "live": live_on_page(plan),
        "why_no_live_check": why_no_live_check_by(request.user, plan),
    }


def _allocated_gpus(pod: Pod) -> str:
    return allocated_to(pod, Layout.read(pod.node.layout if pod.node else ""))


def _evidence(request: PersonRequest, stage: Stage, look: Look | None) -> dict[str, Any]:
    bundle, closed, now = bundle_for(stage), why_no_decision(stage), timezone.now()
    mine = None if closed else _awaited(request, stage)
    return {
        "stage": stage,
        "plan": stage.plan,
        "bundle": bundle,
        "look": look,
        "table": table_of(bundle, look, changed_since(stage, look.bundle_hash, bundle) if look else ()),
        "needs_reason": why_a_reason(stage, bundle, now=now),
        "unasked_since": bundle.unasked_since(now=now),
        "why_not": mine.why_not if mine else closed or f"{stage.name} needs no approval.",
        "counts_not": mine.counts_not if mine else "",
        "shares": mine.shares if mine else [],
        "closed": closed,
    }


def _awaited(request: PersonRequest, stage: Stage) -> Awaited | None:
    """Returns the awaited approval from this person's view; None if there is none."""
    waiting = list(waiting_for_approval(Stage.objects.filter(pk=stage.pk)))
    return awaited(waiting, user=request.user)[0] if waiting else None
