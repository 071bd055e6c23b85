from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.contrib import messages
from django.db.models import Q
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.http import require_POST

from edges.kept_input import BadForm, reason_of
from edges.parts import part_response
from edges.requests import PersonRequest, report_act
from operations.models import Freeze
from people.models import User
from people.rights import NotAllowed
from rollouts.commands.maintenance_windows import (
    MAY,
    WindowPreview,
    make_window,
    preview_window,
    remove_window,
    window_scope,
)
from rollouts.commands.refusals import BadSchedule, Refusal
from rollouts.models import MaintenanceWindow
from rollouts.queries.restraints import restraint_by
from rollouts.web.scopes import places_for
from rollouts.web.window_form import WindowForm
from rollouts.windows import Interval, union, zones
from wording.durations import spell


@dataclass(frozen=True)
class WindowRow:
    window: MaintenanceWindow
    following: Interval | None  # open, or to open next; None: it opens no more
    is_open: bool
    lasts: str
    why_not_remove: str


def new_window(request: PersonRequest) -> HttpResponse:
    user, now = request.user, timezone.now()
    places = [each for each in places_for(user, MAY) if each[0] != "fleet"]
    sent = request.POST if request.method == "POST" else None
    form = WindowForm(sent, user=user, places=places, now=now, initial={"on": request.GET.get("on", "")[:40]})
    if not form.is_bound:
        return _form(request, form)
    if not form.is_valid():
        return _form(request, form, status=400)
    where, window = form.cleaned_data["on"], form.window()
    try:
        shown = preview_window(window, user=user, now=now)
        if request.POST.get("seen") != form.previewed:
            return _form(request, form, shown=shown, place=where.words)
        where.require(user, MAY)
        make_window(window, now=now)
    except BadSchedule as refusal:
        form.refuse(refusal)
        return _form(request, form, status=400)
    except (NotAllowed, Refusal) as refusal:
        form.add_error(None, str(refusal))
        return _form(request, form, status=409)
    messages.success(request, f"Window created: {where.words} releases nodes only inside its windows.")
    return redirect("freezes")


@require_POST
def remove(request: PersonRequest, window_id: int) -> HttpResponse:
    visible = MaintenanceWindow.objects.visible_to(request.user).select_related("cluster", "pool")
    window = get_object_or_404(visible, pk=window_id)
    done = f"Removed: the window of {window.place} no longer binds plans."
    with report_act(request, (BadForm, NotAllowed, Refusal), done=done, ends_form=True):
        window_scope(window).require(request.user, MAY)
        remove_window(window, actor=request.user.username, reason=reason_of(request), now=timezone.now())
    return redirect("freezes")


@part_response
def restraints_part(request: PersonRequest, cluster_id: int, pool_id: int = 0) -> HttpResponse:
    now = timezone.now()
    freezes = Freeze.objects.visible_to(request.user).in_force(now=now).binding(cluster_id)
    windows = MaintenanceWindow.objects.visible_to(request.user).filter(cluster__pk=cluster_id)
    if pool_id:
        freezes = freezes.filter(Q(pool=None) | Q(pool__pk=pool_id))
        windows = windows.filter(Q(pool=None) | Q(pool__pk=pool_id))
    context = {
        "sentences": [restraint_by(one, now=now).sentence for one in freezes.select_related("cluster", "pool")],
        "windows": window_rows(windows.select_related("cluster", "pool"), request.user, now=now),
        "cluster_id": cluster_id,
        "pool_id": pool_id,
    }
    return render(request, "rollouts/freezes/_restraints.html", context)


def window_rows(windows, user: User, *, now: datetime) -> list[WindowRow]:
    found = list(windows)
    places = dict(places_for(user, MAY)) if found else {}
    return [_window_row(window, places, now=now) for window in found]


def _window_row(window: MaintenanceWindow, places: dict[str, str], *, now: datetime) -> WindowRow:
    following = next(union([window.schedule], after=now), None)
    key = f"pool-{window.pool_id}" if window.pool_id else f"cluster-{window.cluster_id}"
    why_not = "" if key in places else f"To remove the window, you need the role admin on {window.place}."
    is_open = following is not None and following.opens_at <= now
    return WindowRow(window, following, is_open, spell(window.schedule.duration), why_not)


def _form(
    request: PersonRequest, form: WindowForm, *, shown: WindowPreview | None = None, place: str = "", status: int = 200
) -> HttpResponse:
    why_not = "" if form.places else "To create a window, you need the role admin on a cluster or a pool."
    context = {
        "form": form,
        "zones": sorted(zones()),
        "shown": shown,
        "words": place,
        "why_not": why_not,
    }
    return render(request, "rollouts/freezes/window_form.html", context, status=status)
