from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone

from edges.concurrent_edits import LENGTH
from edges.documents import LARGEST_BYTES
from edges.requests import PersonRequest
from people.rights import NotAllowed, Permission, require_somewhere
from rollouts.commands.documents import NotAsShown, apply, parse_plan_document, preview_document, write
from rollouts.commands.refusals import BadPlan, Refusal
from rollouts.evidence.export import evidence_of
from rollouts.web.visible_objects import plan_for


def download(request: PersonRequest, plan_id: int) -> HttpResponse:
    plan = plan_for(request.user, plan_id)
    return _file(f"{plan.mark}.yaml", write(plan).encode(), "application/yaml; charset=utf-8")


def evidence(request: PersonRequest, plan_id: int) -> HttpResponse:
    plan = plan_for(request.user, plan_id)
    return _file(f"{plan.mark}-evidence.json", evidence_of(plan), "application/json")


def _file(name: str, content: bytes, kind: str) -> HttpResponse:
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return HttpResponse(content, content_type=kind, headers=headers)


def paste(request: PersonRequest) -> HttpResponse:
    """Previews a document, and applies it on the second request."""
    try:
        require_somewhere(request.user, Permission.DRAFT)
    except NotAllowed as refusal:
        return _page(request, {"refusal": str(refusal), "may_not": True}, 403)
    if request.method != "POST":
        return _page(request, {}, 200)
    content = _content(request)
    context: dict[str, Any] = {"text": content if isinstance(content, str) else content.decode("utf-8", "replace")}
    try:
        return _answer(request, context, content)
    except BadPlan as refusal:
        return _page(request, {**context, "problems": refusal.problems}, 400)
    except NotAllowed as refusal:
        return _page(request, {**context, "refusal": str(refusal)}, 403)
    except Refusal as refusal:
        return _page(request, {**context, "refusal": str(refusal)}, 409)


def _answer(request: PersonRequest, context: dict[str, Any], content: str | bytes) -> HttpResponse:
    document, now = parse_plan_document(content), timezone.now()
    seen = request.POST.get("seen", "")[:LENGTH]
    if not seen:
        return _page(request, {**context, "shown": preview_document(document, actor=request.user, now=now)}, 200)
    try:
        done = apply(document, actor=request.user, now=now, seen=seen)
    except NotAsShown as refusal:
        shown = preview_document(document, actor=request.user, now=now)
        return _page(request, {**context, "shown": shown, "refusal": str(refusal)}, 409)
    messages.success(request, f"{done.plan.title}: {done.outcome}.")
    return redirect("plan", plan_id=done.plan.pk)


def _content(request: PersonRequest) -> str | bytes:
    if (sent := request.FILES.get("file")) is not None:
        return sent.read(LARGEST_BYTES + 1)
    return request.POST.get("text", "").replace("\r\n", "\n")[: LARGEST_BYTES + 1]


def _page(request: PersonRequest, context: dict[str, Any], status: int) -> HttpResponse:
    return render(request, "rollouts/draft/document.html", {**context}, status=status)
