"""One request for approval: what will happen, on which evidence, and the decision. Nothing is decided unseen."""

from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone

from fleet.allocation.physical import physical_of
from fleet.models import Node, Pod
from fleet.web.parts import part
from people.rights import Deed, NotAllowed, require
from people.web.requests import PersonRequest
from rollouts.bundles import Bundle, bundle_for
from rollouts.decisions import awaited, waiting_for_approval
from rollouts.lifecycle import IllegalMove, LostRace, TargetState
from rollouts.models import Stage
from rollouts.steering import approving
from rollouts.steering.refusals import Refusal, StaleBundle
from rollouts.web.loading import stage_for

ANSWER_ORDER = {"fail": 0, "hold": 1, "pass": 2}


def approval(request: PersonRequest, stage_id: int) -> HttpResponse:
    stage = stage_for(request.user, stage_id)
    if request.method == "POST":
        return _decide(request, stage)
    return render(request, "rollouts/approval.html", _approval(request, stage))


@part
def live_part(request: PersonRequest, stage_id: int) -> HttpResponse:
    stage = stage_for(request.user, stage_id)
    bundle = bundle_for(stage)
    seen_hash = request.GET.get("seen", "")
    context = {"stage": stage, "lines": _lines(bundle), "is_as_seen": bundle.hash == seen_hash, "seen_hash": seen_hash}
    return render(request, "rollouts/_approval_live.html", context)


def _decide(request: PersonRequest, stage: Stage) -> HttpResponse:
    plan, asked = stage.plan, request.POST
    verb = approving.reject if asked.get("decision") == "reject" else approving.approve
    try:
        require(request.user, Deed.APPROVE, cluster_id=plan.cluster_id, where=f"cluster {plan.cluster.name}")
        verb(
            stage,
            actor=request.user,
            bundle_hash=asked.get("bundle_hash", ""),
            because=asked.get("because", "").strip()[:1000],
            now=timezone.now(),
        )
    except StaleBundle as refusal:
        messages.error(request, str(refusal))
        return redirect("approval", stage_id=stage.pk)
    except (IllegalMove, LostRace, NotAllowed, Refusal) as refusal:
        messages.error(request, str(refusal))
        return redirect("approval", stage_id=stage.pk)
    messages.success(request, f"Your decision on {stage.name} is written down.")
    return redirect("plan", plan_id=plan.pk)


def _approval(request: PersonRequest, stage: Stage) -> dict[str, Any]:
    bundle = bundle_for(stage)
    targets = list(stage.targets.exclude(state=TargetState.EXCLUDED).order_by("position"))
    nodes = Node.objects.filter(cluster=stage.plan.cluster_id, uid__in=[target.node_uid for target in targets])
    pods = Pod.objects.filter(cluster=stage.plan.cluster_id, node__in=nodes).tenants()
    return {
        "place": "plans",
        "stage": stage,
        "plan": stage.plan,
        "bundle": bundle,
        "seen_hash": bundle.hash,
        "is_as_seen": True,
        "lines": _lines(bundle),
        "seen_at": timezone.now(),
        "targets": targets,
        "gpus": physical_of(nodes).total,
        "pods": list(pods.select_related("node").order_by("namespace", "name")),
        "needed": stage.gate_options.get("approval", {}).get("needed", 1),
        "decisions": stage.approvals.all(),
        "why_not": _why_not(request, stage),
    }


def _lines(bundle: Bundle) -> list[dict[str, Any]]:
    """The answers the decision rests on, what is not green first."""
    found = []
    for place, answer in bundle.content["answers"].items():
        index, _, gate = place.partition(":")
        found.append({"index": int(index), "gate": gate, "answer": answer, **bundle.evidence.get(place, {})})
    return sorted(found, key=lambda line: (ANSWER_ORDER.get(line["answer"], 0), line["index"], line["gate"]))


def _why_not(request: PersonRequest, stage: Stage) -> str:
    """Why this person cannot decide now. Blank: they can."""
    waiting = list(waiting_for_approval(Stage.objects.filter(pk=stage.pk)))
    if not waiting:
        return f"{stage.name} is {stage.state}: there is nothing to decide now."
    return awaited(waiting, user=request.user)[0].why_not
