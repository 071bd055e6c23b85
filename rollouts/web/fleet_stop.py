"""The stop on every page: button, banner and lift."""

from dataclasses import dataclass

from django.db.models import prefetch_related_objects
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.functional import SimpleLazyObject
from django.views.decorators.http import require_POST

from edges.kept_input import BadForm, WhyForm, cleaned_input, reason_of
from edges.parts import part_response
from edges.requests import PersonRequest, report_act
from operations.models import Freeze
from people.rights import NotAllowed, Permission, scope_of
from rollouts.commands import fleet_freezes
from rollouts.commands.fleet_freezes import Where
from rollouts.commands.refusals import Refusal
from rollouts.queries.restraints import restraint_by


@dataclass(frozen=True)
class StopOnPage:
    in_force: Freeze | None
    sentence: str  # blank: the fleet is not stopped
    may_ask: bool  # who sees anything sees the button
    why_not: str  # why this person may not stop the fleet; blank: they may
    why_not_lift: str


def stop(request: HttpRequest) -> dict[str, object]:
    """Returns the stop for templates. Two queries if a page asks."""
    return {"stop": SimpleLazyObject(lambda: _stop(request.user))}


@part_response
def banner_part(request: PersonRequest) -> HttpResponse:
    return render(request, "rollouts/layout/_stop_banner.html")


@require_POST
def put_in_force(request: PersonRequest) -> HttpResponse:
    done = "Stopped: no node of any cluster is released until somebody lifts the stop."
    with report_act(request, (BadForm, NotAllowed, Refusal), done=done, ends_form=True):
        Where().require(request.user, Permission.STOP)
        fleet_freezes.stop(actor=request.user.username, **cleaned_input(WhyForm(request.POST)), now=timezone.now())
    return redirect("freezes")


@require_POST
def lift(request: PersonRequest) -> HttpResponse:
    done = "Stop lifted: plans continue unless a freeze or window binds them."
    with report_act(request, (BadForm, NotAllowed, Refusal), done=done, ends_form=True):
        Where().require(request.user, Permission.RUN)
        fleet_freezes.lift_stop(actor=request.user.username, reason=reason_of(request), now=timezone.now())
    return redirect("freezes")


def _stop(user) -> StopOnPage:
    prefetch_related_objects([user], "bindings")
    if scope_of(user, Permission.SEE).nowhere:
        return StopOnPage(None, "", may_ask=False, why_not="", why_not_lift="")
    now = timezone.now()
    row = fleet_freezes.stop_in_force(now=now)
    return StopOnPage(
        row,
        restraint_by(row, now=now).sentence if row else "",
        may_ask=True,
        why_not=Where().why_not(user, Permission.STOP),
        why_not_lift=Where().why_not(user, Permission.RUN),
    )
