"""Adds, changes, moves and removes routes. Each is recorded as a decision."""

from datetime import datetime
from typing import Any
from zoneinfo import available_timezones

from django.db import transaction
from django.db.models import F, Max

from edges import concurrent_edits
from fleet.models.pool import WorkloadClass
from health.rules.base import Severity
from notifications.commands.refusals import BadRoute, NotificationRefusal
from notifications.models import Channel, Route
from notifications.models.route import ESCALATES_AFTER_MIN, LAST, LONGEST_NAME
from notifications.queries import known_kinds, route_places
from notifications.quiet_hours import DAYS, QuietHours
from people.models import AuditEntry

LISTS = ("places", "severities", "kinds", "workload_classes")
MOST = 50  # entries of a list, and routes
MOST_MIN = 24 * 60  # minutes before the second channel is used


def put_route(
    route: Route | None,
    name: str,
    *,
    channels: list[str],
    escalates_to: str = "",
    escalates_after_min: int = ESCALATES_AFTER_MIN,
    quiet: dict[str, Any] | None = None,
    actor: str,
    now: datetime,
    was: str = "",
    **given: Any,
) -> Route:
    """Adds a route before the catch-all, or changes one. The catch-all matches everything, whatever is given.

    :raises BadRoute: naming the field
    :raises LostRace: when it changed since it was shown
    """
    chosen = _channels(channels)
    urgency = {
        "escalates_to": _second(escalates_to, channels),
        "escalates_after_min": _minutes(escalates_after_min),
        "quiet": _quiet(quiet or {}),
    }
    with transaction.atomic():
        Route.objects.select_for_update().get(pk=Route.catch_all().pk)  # routes change one at a time
        if route is not None:
            route = Route.objects.get(pk=route.pk)
            refuse_unseen(route, was=was)
        is_catch_all = route is not None and route.is_catch_all
        fields = urgency if is_catch_all else {"name": _name(name, route), **_lists(given), **urgency}
        if route is None:
            others = Route.objects.filter(is_catch_all=False)
            if others.count() >= MOST:
                raise BadRoute("name", f"At most {MOST} routes.")
            route = Route(position=(others.aggregate(last=Max("position"))["last"] or 0) + 1)
        before = described(route) if route.pk else None
        for field, value in fields.items():
            setattr(route, field, value)
        route.changed_by, route.changed_at = actor, now
        route.save()
        route.channels.set(chosen)
        _record(route, "route.put", actor=actor, now=now, evidence={"before": before, "after": described(route)})
    return route


def move_route(route: Route, *, up: bool, actor: str, now: datetime) -> None:
    """Moves a route one place up or down. Does nothing at the end.

    :raises NotificationRefusal: for the catch-all, which is always the last
    """
    if route.is_catch_all:
        raise NotificationRefusal("The route for everything else is always the last.")
    with transaction.atomic():
        Route.objects.select_for_update().get(pk=Route.catch_all().pk)
        rows = list(Route.objects.filter(is_catch_all=False).order_by("position"))
        place = next((place for place, row in enumerate(rows) if row.pk == route.pk), None)
        other = None if place is None else place - 1 if up else place + 1
        if place is None or other is None or not 0 <= other < len(rows):
            return
        rows[place], rows[other] = rows[other], rows[place]
        Route.objects.filter(is_catch_all=False).update(position=F("position") + LAST + 1)
        for position, row in enumerate(rows, 1):
            Route.objects.filter(pk=row.pk).update(position=position)
        _record(route, "route.move", actor=actor, now=now, evidence={"order": [row.name for row in rows]})


def remove_route(route: Route, *, actor: str, now: datetime, was: str = "") -> None:
    """Removes a route.

    :raises NotificationRefusal: for the catch-all
    :raises LostRace: when it changed since the mark `was`
    """
    if route.is_catch_all:
        raise NotificationRefusal("The route for everything else is always there.")
    with transaction.atomic():
        Route.objects.select_for_update().get(pk=Route.catch_all().pk)
        row = Route.objects.filter(pk=route.pk).first()
        if row is None:
            return
        refuse_unseen(row, was=was)
        evidence = described(row)
        row.delete()
        _record(route, "route.remove", actor=actor, now=now, evidence=evidence)


def mark_of(route: Route | None) -> str:
    return concurrent_edits.mark_of(_Marked(route), ("text",)) if route else concurrent_edits.NONE


def refuse_unseen(route: Route, *, was: str) -> None:
    concurrent_edits.refuse_unseen(_Marked(route), ("text",), was=was, to={}, labels={})


class _Marked:
    """A route with its channels as one text."""

    def __init__(self, route: Route) -> None:
        self.text = str(described(route))


def described(route: Route) -> dict[str, Any]:
    channels = sorted(channel.name for channel in route.channels.all())
    urgency = {
        "escalates_to": route.escalates_to.name if route.escalates_to else "",
        "escalates_after_min": route.escalates_after_min,
        "quiet": route.quiet,
    }
    return {"name": route.name, **{name: getattr(route, name) for name in LISTS}, "channels": channels, **urgency}


def _name(name: str, route: Route | None) -> str:
    name = " ".join(name.split())
    if not 1 <= len(name) <= LONGEST_NAME:
        raise BadRoute("name", f"A name of at most {LONGEST_NAME} characters.")
    others = Route.objects.exclude(pk=route.pk) if route else Route.objects.all()
    if others.filter(name=name).exists():
        raise BadRoute("name", "Another route has this name.")
    return name


def _channels(given: list[str]) -> list[Channel]:
    found = {channel.name: channel for channel in Channel.objects.shared().filter(name__in=given)}
    if missing := [name for name in given if name not in found]:
        raise BadRoute("channels", f"There is no channel {missing[0][:63]}.")
    return list(found.values())


def _second(name: str, channels: list[str]) -> Channel | None:
    if name in channels:
        raise BadRoute("escalates_to", f"{name} is a first channel of this route already.")
    channel = Channel.objects.shared().filter(name=name).first()
    if name and channel is None:
        raise BadRoute("escalates_to", f"There is no channel {name[:63]}.")
    return channel


def _minutes(number: int) -> int:
    if not 1 <= number <= MOST_MIN:
        raise BadRoute("escalates_after_min", f"1 to {MOST_MIN} minutes.")
    return number


def _quiet(given: dict[str, Any]) -> dict[str, Any]:
    """Returns quiet hours as they are stored; an empty row for none."""
    if not given:
        return {}
    try:
        hours = QuietHours.read(given)
    except ValueError as error:
        raise BadRoute("quiet", "Times as 22:00.") from error
    if hours is None or hours.zone not in available_timezones():
        raise BadRoute("quiet", "A time zone, as Europe/Berlin.")
    days = sorted(set(hours.days))
    if not days or not set(days) <= set(range(len(DAYS))):
        raise BadRoute("quiet", "At least one day: 0 is Monday, 6 is Sunday.")
    if hours.start == hours.end and len(days) == len(DAYS):
        raise BadRoute("quiet", "These hours never end: leave a time at which the digest is sent.")
    return hours.written() | {"days": days}


def _lists(given: dict[str, Any]) -> dict[str, list[str]]:
    known = {
        "places": route_places(),
        "severities": [severity.value for severity in Severity],
        "kinds": list(known_kinds()),
        "workload_classes": WorkloadClass.values,
    }
    found = {}
    for field in LISTS:
        values = list(dict.fromkeys(given.get(field, ())))
        if len(values) > MOST:
            raise BadRoute(field, f"At most {MOST}.")
        if unknown := [value for value in values if value not in known[field]]:
            raise BadRoute(field, f"Unknown: {unknown[0][:100]}.")
        found[field] = values
    return found


def _record(route: Route, verb: str, *, actor: str, now: datetime, evidence: Any) -> None:
    AuditEntry.record(f"route:{route.pk}", verb=verb, actor=actor, evidence=evidence, now=now)
