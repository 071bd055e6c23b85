"""The buttons of a finding. Each makes the same call as REST; a refusal is shown as a sentence."""

from collections.abc import Callable, Mapping
from datetime import timedelta

from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_POST

from edges.kept_input import cleaned_input, reason_of
from edges.requests import PersonRequest, report_act
from health.inbox import acts, rule_mutes
from health.inbox.rights import require_act, require_mute
from health.inbox.verbs import VERBS
from health.models import Finding, Mute
from health.web.act_form import ActForm, MuteForm
from health.web.kept_input import REFUSALS, kept_if_refused

COMMANDS: Mapping[str, Callable[..., None]] = {
    "acknowledge": acts.acknowledge,
    "assign": acts.assign,
    "unassign": acts.unassign,
    "accept": acts.accept,
    "dismiss": acts.dismiss,
}


@require_POST
def act(request: PersonRequest, finding_id: int, verb: str) -> HttpResponse:
    if verb not in VERBS:
        raise Http404
    rows = Finding.objects.visible_to(request.user).select_related("cluster", "node")
    finding = get_object_or_404(rows, pk=finding_id)
    with kept_if_refused(request, finding.pk, verb, done=VERBS[verb].done):
        require_act(request.user, finding)
        _mute(request, finding) if verb == "mute" else _run_command(request, finding, verb)
    return _redirect_back(request, finding.pk)


@require_POST
def lift(request: PersonRequest, mute_id: int) -> HttpResponse:
    visible = Mute.objects.visible_to(request.user).select_related("cluster", "pool", "node")
    row = get_object_or_404(visible, pk=mute_id)
    done = f"Mute lifted: faults that still exist in {row.place} are open again."
    with report_act(request, REFUSALS, done=done, ends_form=True):
        require_mute(request.user, row)
        rule_mutes.lift(row, actor=request.user.get_username(), reason=reason_of(request), now=timezone.now())
    return _redirect_back(request, None)


def _run_command(request: PersonRequest, finding: Finding, verb: str) -> None:
    given = cleaned_input(ActForm(request.POST))
    taken = {"reason", "key"} | ({"to"} if verb == "assign" else set()) | ({"seen"} if VERBS[verb].changes else set())
    asked = {name: given[name] for name in taken}
    COMMANDS[verb](finding, **asked, actor=request.user.get_username(), now=timezone.now())


def _mute(request: PersonRequest, finding: Finding) -> None:
    given = cleaned_input(MuteForm(request.POST, finding=finding, user=request.user))
    row, now = given["scope"], timezone.now()
    require_mute(request.user, row)
    until = now + timedelta(hours=given["hours"])
    actor = request.user.get_username()
    rule_mutes.mute(row, reason=given["reason"], until=until, key=given["key"], actor=actor, now=now)


def _redirect_back(request: PersonRequest, finding_id: int | None) -> HttpResponse:
    """Returns a redirect to the previous place in the inbox, or to the finding."""
    there = request.POST.get("back", "")[:500]
    here = reverse("findings")
    if there.startswith(f"{here}?") and url_has_allowed_host_and_scheme(there, allowed_hosts=None):
        return redirect(there)
    return redirect(f"{here}?finding={finding_id}" if finding_id else here)
