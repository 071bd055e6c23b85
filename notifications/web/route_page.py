"""Adds, changes, moves and removes routes from pages, with the same calls as REST."""

from dataclasses import fields
from datetime import time
from typing import Any
from zoneinfo import available_timezones

from django import forms
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST

from edges.concurrent_edits import LENGTH
from edges.fields import ClockTime
from edges.requests import PersonRequest, report_act
from edges.transition_errors import LostRace
from fleet.models.pool import WorkloadClass
from health.rules.base import Severity
from notifications.commands.refusals import BadRoute, NotificationRefusal
from notifications.commands.routes import LISTS, MOST_MIN, mark_of, move_route, put_route, remove_route
from notifications.models import Route
from notifications.models.route import ESCALATES_AFTER_MIN, LONGEST_NAME
from notifications.queries import offered_channels, offered_kinds, offered_places
from notifications.quiet_hours import DAYS, QuietHours
from notifications.web.access import for_the_fleet, why_not_change
from people.rights import Permission

REFUSALS = (NotificationRefusal,)
QUIET = tuple(field.name for field in fields(QuietHours))
BOXES = forms.CheckboxSelectMultiple
LIST = forms.SelectMultiple({"size": 8})


def offered_second() -> list[tuple[str, str]]:
    return [("", "none"), *offered_channels()]


def offered_zones() -> list[tuple[str, str]]:
    return [("", "no quiet hours"), *((zone, zone) for zone in sorted(available_timezones()))]


class RouteForm(forms.Form):
    """A route. An empty list matches everything."""

    name = forms.CharField(max_length=LONGEST_NAME, required=False)
    places = forms.MultipleChoiceField(required=False, widget=LIST, choices=offered_places)
    kinds = forms.MultipleChoiceField(required=False, widget=LIST, choices=offered_kinds)
    severities = forms.MultipleChoiceField(
        required=False, widget=BOXES, choices=[(each.value, each.value) for each in Severity]
    )
    workload_classes = forms.MultipleChoiceField(
        required=False, widget=BOXES, choices=[(each, each) for each in WorkloadClass.values]
    )
    channels = forms.MultipleChoiceField(required=False, widget=BOXES, choices=offered_channels)
    escalates_to = forms.ChoiceField(required=False, choices=offered_second)
    escalates_after_min = forms.IntegerField(
        required=False, min_value=1, max_value=MOST_MIN, initial=ESCALATES_AFTER_MIN
    )
    zone = forms.ChoiceField(required=False, choices=offered_zones)
    start = ClockTime(required=False)
    end = ClockTime(required=False)
    days = forms.TypedMultipleChoiceField(required=False, widget=BOXES, coerce=int, choices=list(enumerate(DAYS)))
    holds_criticals = forms.BooleanField(required=False)

    def clean(self) -> dict[str, Any]:
        """Returns the fields of a route; the quiet hours are one of them."""
        given = {"escalates_after_min": ESCALATES_AFTER_MIN} | {
            name: value for name, value in self.cleaned_data.items() if value is not None
        }
        hours = {name: given.pop(name, None) for name in QUIET}
        if not hours["zone"]:
            return given | {"quiet": {}}
        if missing := [name for name in ("start", "end", "days") if not hours[name] and hours[name] != time(0)]:
            for name in missing:
                self.add_error(name, "Quiet hours need it.")
            return given
        return given | {"quiet": QuietHours(**hours).written()}


@require_http_methods(["GET", "HEAD", "POST"])
@for_the_fleet(Permission.ADMINISTER)
def add(request: PersonRequest) -> HttpResponse:
    return _put(request, None)


@require_http_methods(["GET", "HEAD", "POST"])
@for_the_fleet(Permission.ADMINISTER)
def edit(request: PersonRequest, route_id: int) -> HttpResponse:
    return _put(request, get_object_or_404(Route.in_order(), pk=route_id))


@require_POST
@for_the_fleet(Permission.ADMINISTER)
def move_route_in_list(request: PersonRequest, route_id: int) -> HttpResponse:
    route = get_object_or_404(Route.in_order(), pk=route_id)
    with report_act(request, REFUSALS):
        is_up = request.POST.get("up") == "1"
        move_route(route, up=is_up, actor=request.user.get_username(), now=timezone.now())
    return redirect("notifications")


@require_POST
@for_the_fleet(Permission.ADMINISTER)
def remove(request: PersonRequest, route_id: int) -> HttpResponse:
    route = get_object_or_404(Route.in_order(), pk=route_id)
    with report_act(request, REFUSALS, done=f"Route “{route.name}” is removed."):
        remove_route(route, actor=request.user.get_username(), now=timezone.now())
    return redirect("notifications")


def _put(request: PersonRequest, route: Route | None) -> HttpResponse:
    if request.method != "POST":
        initial = {name: getattr(route, name) for name in ("name", *LISTS)} if route else {}
        initial |= _urgency(route) if route else {"days": list(range(len(DAYS)))}
        return _form(request, RouteForm(initial=initial, auto_id="%s"), route, was=mark_of(route))
    form, was, status = RouteForm(request.POST, auto_id="%s"), request.POST.get("was", "")[:LENGTH], 400
    if form.is_valid():
        try:
            saved = put_route(
                route, actor=request.user.get_username(), now=timezone.now(), was=was, **form.cleaned_data
            )
        except BadRoute as wrong:
            form.add_error("zone" if wrong.field == "quiet" else wrong.field, str(wrong))
        except LostRace as refusal:
            form.add_error(None, str(refusal))
            was, status = mark_of(route), 409
        else:
            messages.success(request, f"Route “{saved.name}” is saved.")
            return redirect("notifications")
    return _form(request, form, route, was=was, status=status)


def _urgency(route: Route) -> dict[str, Any]:
    hours = {"days": list(range(len(DAYS)))} | route.quiet
    return hours | {
        "channels": [channel.name for channel in route.channels.all()],
        "escalates_to": route.escalates_to.name if route.escalates_to else "",
        "escalates_after_min": route.escalates_after_min,
    }


def _form(request: PersonRequest, form: RouteForm, route: Route | None, *, was: str, status: int = 200) -> HttpResponse:
    context = {"form": form, "route": route, "was": was, "why_not": why_not_change(request)}
    return render(request, "notifications/route.html", context, status=status)
