"""The freezes page: freezes in force, new ones after a preview, and lifts."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import uuid4

from django import forms
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.http import require_POST

from edges.fields import DateAndTime, Reason
from edges.kept_input import BadForm, reason_of
from edges.parts import part_response
from edges.requests import PersonRequest, report_act
from operations.models import Freeze
from people.rights import NotAllowed, Permission, Scope, scope_of
from rollouts.commands import fleet_freezes
from rollouts.commands.fleet_freezes import BoundPlan, Where, bound_by, freeze_scope, plans_bound
from rollouts.commands.maintenance_windows import MAY
from rollouts.commands.refusals import BadFreeze, Refusal
from rollouts.models import MaintenanceWindow
from rollouts.queries.restraints import restraint_by
from rollouts.web.scopes import PlacedForm, places_for
from rollouts.web.windows_page import window_rows


class FreezeForm(PlacedForm):
    on = forms.CharField(
        label="Scope",
        error_messages={"required": "Choose what to freeze."},
        widget=forms.Select,
        help_text="The freeze applies to the present nodes of the pool at each moment.",
    )
    until = DateAndTime(label="Until (UTC)", required=False, help_text="Empty: until a person lifts the freeze.")
    reason = Reason(
        label="Reason (stored permanently, and shown by all plans that wait)",
        error_messages={"required": "Give a reason. Every waiting plan shows it."},
    )
    binds_rollbacks = forms.BooleanField(
        label="Bind rollbacks as well",
        required=False,
        help_text="If not selected, rollbacks continue, so that one operator can always roll back without help.",
    )

    @property
    def previewed(self) -> str:
        """Returns the scope and the rule for rollbacks. When either changes, the page shows a new preview."""
        return f"{self['on'].value()} {bool(self['binds_rollbacks'].value())}"

    def clean_until(self) -> datetime | None:
        """Returns the end; None until somebody lifts it."""
        until = self.cleaned_data["until"]
        try:
            fleet_freezes.refuse_end(until, now=self.now)
        except BadFreeze as refusal:
            raise forms.ValidationError(str(refusal)) from refusal
        return until

    def freeze(self, *, key: str) -> None:
        """Creates the freeze.

        :raises Refusal: when the key made another one
        """
        given = self.cleaned_data
        fleet_freezes.freeze(
            given["on"], actor=self.user.username, reason=given["reason"], until=given["until"],
            binds_rollbacks=given["binds_rollbacks"], key=key, now=self.now,
        )  # fmt: skip


PAST = 20


@dataclass(frozen=True)
class FreezeRow:
    freeze: Freeze
    sentence: str
    plans: int  # in progress, that it binds
    why_not_lift: str


def freezes(request: PersonRequest) -> HttpResponse:
    return render(request, "rollouts/freezes/page.html", _freezes(request))


@part_response
def freezes_part(request: PersonRequest) -> HttpResponse:
    return render(request, "rollouts/freezes/_body.html", _freezes(request))


def new_freeze(request: PersonRequest) -> HttpResponse:
    user, now = request.user, timezone.now()
    places = places_for(user, Permission.STOP)
    initial = {"on": request.GET.get("on", "fleet")[:40]}
    sent = request.POST if request.method == "POST" else None
    form = FreezeForm(sent, user=user, places=places, now=now, initial=initial)
    if not form.is_bound:
        return _form(request, form)
    if not form.is_valid():
        return _form(request, form, status=400)
    where = form.cleaned_data["on"]
    bound = bound_by(where, binds_rollbacks=form.cleaned_data["binds_rollbacks"], user=user)
    if request.POST.get("seen") != form.previewed:
        return _form(request, form, where=where, bound=bound)
    try:
        where.require(user, Permission.STOP)
        form.freeze(key=request.POST.get("key", "")[:100])
    except (NotAllowed, Refusal) as refusal:
        form.add_error(None, str(refusal))
        return _form(request, form, where=where, bound=bound, status=409)
    messages.success(request, f"Frozen: no more releases in {where.words}.")
    return redirect("freezes")


@require_POST
def lift(request: PersonRequest, freeze_id: int) -> HttpResponse:
    visible = Freeze.objects.visible_to(request.user).select_related("cluster", "pool")
    freeze = get_object_or_404(visible, pk=freeze_id)
    with report_act(
        request,
        (BadForm, NotAllowed, Refusal),
        done=f"Freeze lifted: plans of {freeze.place} continue unless another freeze or window binds them.",
        ends_form=True,
    ):
        freeze_scope(freeze).require(request.user, Permission.RUN)
        fleet_freezes.lift(freeze, actor=request.user.username, reason=reason_of(request), now=timezone.now())
    return redirect("freezes")


def _freezes(request: PersonRequest) -> dict[str, Any]:
    now, user = timezone.now(), request.user
    visible = Freeze.objects.visible_to(user).select_related("cluster", "pool")
    in_force = list(visible.in_force(now=now))
    bound, may_lift = plans_bound(in_force, user), scope_of(user, Permission.RUN)
    rows = [_freeze_row(one, bound[one.pk], may_lift, now=now) for one in in_force]
    return {
        "rows": sorted(rows, key=lambda row: not row.freeze.is_stop),
        "past": visible.exclude(pk__in=[one.pk for one in in_force])[:PAST],
        "most": PAST,
        "windows": window_rows(
            MaintenanceWindow.objects.visible_to(user).select_related("cluster", "pool"), user, now=now
        ),
        "may_make_windows": not scope_of(user, MAY).nowhere,
        "may_freeze": not scope_of(user, Permission.STOP).nowhere,
    }


def _freeze_row(freeze: Freeze, plans: int, may_lift: Scope, *, now: datetime) -> FreezeRow:
    is_theirs = (
        may_lift.everywhere
        or (freeze.cluster_id is not None and freeze.cluster_id in may_lift.cluster_ids)
        or (freeze.pool_id is not None and freeze.pool_id in may_lift.pool_ids)
    )
    why_not = "" if is_theirs else f"To lift the freeze, you need the role operator or admin on {freeze.place}."
    return FreezeRow(freeze, restraint_by(freeze, now=now).sentence, plans, why_not)


def _form(
    request: PersonRequest,
    form: FreezeForm,
    *,
    where: Where | None = None,
    bound: list[BoundPlan] | None = None,
    status: int = 200,
) -> HttpResponse:
    context = {
        "form": form,
        "where": where,
        "bound": bound,
        "is_shown": bound is not None,
        "key": uuid4().hex,  # a form that was sent, or answered, is another one
        "why_not": "" if form.places else Where().why_not(request.user, Permission.STOP),
    }
    return render(request, "rollouts/freezes/freeze_form.html", context, status=status)
