"""The card with the last lines of a pod's log: asked for with a button, read by a worker, gone after two minutes."""

from typing import Any

from django.http import HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils import timezone
from django.views.decorators.http import require_POST

from edges.parts import part_response
from edges.requests import PersonRequest
from fleet.models import Pod
from health.inbox.pod_logs import NO_REDIS, ask_log, why_not_log
from health.sources.pod_log_answers import answer_for
from health.sources.snapshots import SnapshotsUnavailable
from health.stack.pods import reason_in_log
from people.rights import NotAllowed


@part_response
def pod_log_part(request: PersonRequest, pod_id: int) -> HttpResponse:
    return _shown(request, _pod(request, pod_id))


@require_POST
def ask(request: PersonRequest, pod_id: int) -> HttpResponse:
    pod = _pod(request, pod_id)
    try:
        ask_log(pod, user=request.user, now=timezone.now())
    except NotAllowed as refusal:
        return _shown(request, pod, str(refusal), status=403)
    except SnapshotsUnavailable:
        return _shown(request, pod, NO_REDIS, status=503)
    return _shown(request, pod)


def _pod(request: PersonRequest, pod_id: int) -> Pod:
    return get_object_or_404(Pod.objects.visible_to(request.user).select_related("cluster"), pk=pod_id)


def _shown(request: PersonRequest, pod: Pod, problem: str = "", *, status: int = 200) -> HttpResponse:
    refusal = why_not_log(request.user, pod)
    context: dict[str, Any] = {"pod": pod, "why_not": refusal, "problem": problem}
    if not refusal:
        try:
            answer = context["answer"] = answer_for(pod.uid, request.user.pk)
        except SnapshotsUnavailable:
            context["problem"] = problem or NO_REDIS
        else:
            if answer and answer.lines:
                context["reason"] = reason_in_log(pod, answer.container, answer.lines, now=timezone.now())
    return render(request, "health/pod/_log.html", context, status=status)
