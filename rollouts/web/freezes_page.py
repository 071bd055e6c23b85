"""What is frozen, by whom and until when; freezing more, after a look at what that holds back; and lifting it."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.dateparse import parse_datetime
from django.views.decorators.http import require_POST

from edges.parts import part
from edges.requests import PersonRequest, answered
from people.rights import NotAllowed, Permission, Scope, scope_of
from rollouts.models import Freeze, MaintenanceWindow, Plan
from rollouts.restraints import restraint_by
from rollouts.steering import freezing
from rollouts.steering.freezing import HeldBack, Where, held_back_by, where_of
from rollouts.steering.refusals import BadFreeze, Refusal
from rollouts.steering.windowing import MAY
from rollouts.web.placing import places_for, where_named
from rollouts.web.stopping import because_of
from rollouts.web.windows_page import window_rows

PAST = 20
UNTIL_AT_MOST = 32  # characters


@dataclass(frozen=True)
class FreezeRow:
    freeze: Freeze
    sentence: str
    plans: int  # under way where it binds
    why_not_lift: str


@dataclass
class FreezeForm:
    """As it was written, so that what cannot be read can be shown again."""

    on: str = "fleet"  # fleet, cluster-3, pool-7
    until: str = ""
    because: str = ""
    holds_rollbacks: bool = False
    problems: dict[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, request: PersonRequest) -> FreezeForm:
        asked = request.POST
        return cls(
            on=asked.get("on", "fleet")[:40],
            until=asked.get("until", "").strip()[:UNTIL_AT_MOST],
            because=asked.get("because", "").strip()[:1000],
            holds_rollbacks=asked.get("holds_rollbacks") == "on",
        )

    @property
    def look(self) -> str:
        """What its preview was of: another place or rule is looked at anew."""
        return f"{self.on} {self.holds_rollbacks}"

    def ends_at(self, *, now: datetime) -> datetime | None:
        """None: when somebody lifts it, or it makes no sense; then the field says so."""
        if not self.until:
            return None
        try:
            at = parse_datetime(self.until)
        except ValueError:
            at = None
        if at is None:
            self.problems["until"] = "This is no date and time: 2026-11-30T08:00."
            return None
        at = at if at.tzinfo else at.replace(tzinfo=UTC)
        try:
            freezing.refuse_end(at, now=now)
        except BadFreeze as refusal:
            self.problems["until"] = refusal.problems[0]["sentence"]
        return at


def freezes(request: PersonRequest) -> HttpResponse:
    return render(request, "rollouts/freezes.html", {"place": "freezes", **_freezes(request)})


@part
def freezes_part(request: PersonRequest) -> HttpResponse:
    return render(request, "rollouts/_freezes.html", _freezes(request))


def new(request: PersonRequest) -> HttpResponse:
    """Shown first; done once the one who asks has seen what it holds back."""
    if request.method != "POST":
        return _form(request, FreezeForm(on=request.GET.get("on", "fleet")[:40]))
    form, now = FreezeForm.read(request), timezone.now()
    where, until = where_named(request.user, form.on), form.ends_at(now=now)
    if where is None:
        form.problems["on"] = "Choose what to freeze."
    if not form.because:
        form.problems["because"] = "Say why: every plan that waits will say it."
    if where is None or form.problems:
        return _form(request, form, status=400)
    held = held_back_by(where, holds_rollbacks=form.holds_rollbacks, user=request.user)
    if request.POST.get("seen") != form.look:
        return _form(request, form, where=where, held=held)
    try:
        where.require(request.user, Permission.STOP)
        freezing.freeze(
            where, actor=request.user.username, because=form.because, until=until,
            holds_rollbacks=form.holds_rollbacks, key=request.POST.get("key", "")[:100], now=now,
        )  # fmt: skip
    except (NotAllowed, Refusal) as refusal:
        form.problems["all"] = str(refusal)
        return _form(request, form, where=where, held=held, status=409)
    messages.success(request, f"Frozen: nothing more is let go in {where.words}.")
    return redirect("freezes")


@require_POST
def lift(request: PersonRequest, freeze_id: int) -> HttpResponse:
    visible = Freeze.objects.visible_to(request.user).select_related("cluster", "pool")
    freeze = get_object_or_404(visible, pk=freeze_id)
    with answered(request, (NotAllowed, Refusal), done=f"Lifted: the plans of {freeze.place} go on."):
        where_of(freeze).require(request.user, Permission.RUN)
        freezing.lift(freeze, actor=request.user.username, because=because_of(request), now=timezone.now())
    return redirect("freezes")


def _freezes(request: PersonRequest) -> dict[str, Any]:
    now, user = timezone.now(), request.user
    visible = Freeze.objects.visible_to(user).select_related("cluster", "pool")
    in_force = list(visible.in_force(now=now))
    clusters = list(Plan.objects.visible_to(user).under_way().values_list("cluster", flat=True))
    may_lift = scope_of(user, Permission.RUN)
    rows = [_row(one, clusters, may_lift, now=now) for one in in_force]
    return {
        "rows": sorted(rows, key=lambda row: not row.freeze.is_stop),
        "past": visible.exclude(pk__in=[one.pk for one in in_force])[:PAST],
        "windows": window_rows(
            MaintenanceWindow.objects.visible_to(user).select_related("cluster", "pool"), user, now=now
        ),
        "may_make_windows": not scope_of(user, MAY).nowhere,
        "may_freeze": not scope_of(user, Permission.STOP).nowhere,
    }


def _row(freeze: Freeze, clusters: list[int], may_lift: Scope, *, now: datetime) -> FreezeRow:
    is_theirs = (
        may_lift.everywhere
        or (freeze.cluster_id is not None and freeze.cluster_id in may_lift.cluster_ids)
        or (freeze.pool_id is not None and freeze.pool_id in may_lift.pool_ids)
    )
    why_not = "" if is_theirs else f"To lift it you need the role operator or admin on {freeze.place}."
    plans = clusters.count(freeze.cluster_id) if freeze.cluster_id else len(clusters)
    return FreezeRow(freeze, restraint_by(freeze, now=now).sentence, plans, why_not)


def _form(
    request: PersonRequest,
    form: FreezeForm,
    *,
    where: Where | None = None,
    held: list[HeldBack] | None = None,
    status: int = 200,
) -> HttpResponse:
    places = places_for(request.user, Permission.STOP)
    context = {
        "place": "freezes",
        "form": form,
        "places": places,
        "where": where,
        "held": held,
        "is_shown": held is not None,
        "key": request.POST.get("key", "")[:100] or uuid4().hex,
        "why_not": "" if places else Where().why_not(request.user, Permission.STOP),
    }
    return render(request, "rollouts/freeze_form.html", context, status=status)
