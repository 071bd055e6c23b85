"""The buttons of a finding: each is one call, the same that REST makes. A refusal comes back as a sentence."""

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_POST

from edges.digits import whole
from edges.requests import PersonRequest, answered, reason
from edges.unseen import LENGTH
from fleet.models import Pool
from health.inbox import acts, muting
from health.inbox.refusals import BadAct
from health.inbox.rights import require_act, require_mute
from health.inbox.verbs import VERBS
from health.models import Finding, Mute
from health.web.written import REFUSALS, kept_if_refused
from people.roster.accounts import LONGEST_NAME

TOLD: Mapping[str, Callable[..., None]] = {
    "acknowledge": acts.acknowledge,
    "assign": acts.assign,
    "release": acts.release,
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
        _mute(request, finding) if verb == "mute" else _tell(request, finding, verb)
    return _back(request, finding.pk)


@require_POST
def lift(request: PersonRequest, mute_id: int) -> HttpResponse:
    visible = Mute.objects.visible_to(request.user).select_related("cluster", "pool", "node")
    row = get_object_or_404(visible, pk=mute_id)
    done = f"Lifted: what is still wrong in {row.place} is open again."
    with answered(request, REFUSALS, done=done, ends_form=True):
        require_mute(request.user, row)
        muting.lift(row, actor=request.user.get_username(), because=reason(request), now=timezone.now())
    return _back(request, None)


def _tell(request: PersonRequest, finding: Finding, verb: str) -> None:
    to = request.POST.get("to", "").strip()[: LONGEST_NAME + 1]  # one more: it is nobody's
    more: dict[str, Any] = {"to": to} if verb == "assign" else {}
    if VERBS[verb].changes:
        more["seen"] = request.POST.get("seen", "")[:LENGTH]
    TOLD[verb](finding, because=reason(request), **more, **_told(request))


def _mute(request: PersonRequest, finding: Finding) -> None:
    scope, _, key = request.POST.get("scope", "")[:40].partition("-")
    hours = whole(request.POST.get("hours", "")[:18]) or 0
    pool = Pool.objects.visible_to(request.user).filter(pk=whole(key) or 0).first() if scope == "pool" else None
    row = muting.scoped(finding, scope, pool=pool)
    require_mute(request.user, row)
    told = _told(request)
    longest = muting.MOST // timedelta(hours=1)
    if not 0 < hours <= longest:
        raise BadAct(("hours", f"Say for how long: 1 to {longest} hours."))
    until = told["now"] + timedelta(hours=hours)
    muting.mute(row, because=reason(request), until=until, **told)


def _told(request: PersonRequest) -> dict[str, Any]:
    key = request.POST.get("key", "")[:100]
    return {"actor": request.user.get_username(), "key": key, "now": timezone.now()}


def _back(request: PersonRequest, finding_id: int | None) -> HttpResponse:
    """To where they were in the inbox, or to the finding."""
    there = request.POST.get("back", "")[:500]
    here = reverse("findings")
    if there.startswith(f"{here}?") and url_has_allowed_host_and_scheme(there, allowed_hosts=None):
        return redirect(there)
    return redirect(f"{here}?finding={finding_id}" if finding_id else here)
