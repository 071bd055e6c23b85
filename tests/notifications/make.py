"""Builders of channels, routes and events."""

from typing import Any

from health.evaluation.finding_events import event_of
from tests.make import NOON

SIGNING = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


def a_channel(name: str = "ops", kind: str = "webhook", **given: Any):
    from notifications.models import Channel

    row = {"added_by": "ada", "added_at": NOON, "changed_at": NOON, "state_since": NOON, "lease_until": NOON}
    return Channel.objects.create(name=name, kind=kind, **row | given)


def a_route(name: str, *channels: Any, position: int = 1, **given: Any):
    from notifications.models import Route

    route = Route.objects.create(name=name, position=position, changed_by="ada", changed_at=NOON, **given)
    route.channels.set(channels)
    return route


def catch_all(*channels: Any, **given: Any):
    from notifications.models import Route

    route = Route.catch_all()
    route.channels.set(channels)
    Route.objects.filter(pk=route.pk).update(**given)
    return route


def happened(finding, kind: str = "finding.opened", *, at=NOON, is_settled: bool = True, **facts: Any):
    """An event of the finding, settled unless it is said otherwise."""
    from fleet.models import DomainEvent

    event = event_of(finding, kind, now=at, **facts)
    event.is_settled = is_settled
    DomainEvent.write([event])
    return event
