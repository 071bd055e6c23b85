"""A round of the router: it reads the outbox in order and writes the deliveries of each event.

An event and its deliveries are one transaction, so that a killed worker loses none and writes none twice. A finding
that its cause explains, that is muted, or that has ended meanwhile begins no conversation.
"""

import time
from collections.abc import Callable
from datetime import datetime

import structlog
from django.db import transaction

from edges.transition_errors import LostRace
from fleet.models import DomainEvent
from notifications.models import Router
from notifications.models.channel import wake_channels
from notifications.models.router import events_to_route, has_work
from notifications.rounds.batch import RoutedBatch
from notifications.rounds.escalations import escalate_due

AT_ONCE = 200  # events per transaction
ROUND_S = 20.0
log = structlog.get_logger(__name__)


def run_router(_key: int, *, owner: str, clock: Callable[[], datetime]) -> None:
    router = Router.the_one(now=clock())
    until = time.monotonic() + ROUND_S
    while has_work(now=clock()) and router.take_lease(owner=owner, now=clock()):
        try:
            while time.monotonic() < until and (
                _route_some(router, now=clock()) or _escalate_some(router, now=clock())
            ):
                pass
        except LostRace as lost:
            log.info("another worker routes events", reason=str(lost))
            return
        router.end_lease(now=clock())
        if time.monotonic() >= until:
            return


def _route_some(router: Router, *, now: datetime) -> int:
    """Routes some events, and returns how many."""
    with transaction.atomic():
        router.keep_lease(now=now)
        events = list(events_to_route(now=now)[:AT_ONCE])
        batch = RoutedBatch(events, now)
        for event in events:
            batch.route(event)
        batch.write()
        DomainEvent.objects.filter(pk__in=[event.pk for event in events]).update(routed_at=now)
        transaction.on_commit(lambda: wake_channels(batch.woken, now=now), robust=True)
    return len(events)


def _escalate_some(router: Router, *, now: datetime) -> int:
    """Uses the second channels that are due, and returns how many conversations asked for one."""
    with transaction.atomic():
        router.keep_lease(now=now)
        number, woken = escalate_due(now=now)
        transaction.on_commit(lambda: wake_channels(woken, now=now), robust=True)
    return number
