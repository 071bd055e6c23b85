from datetime import datetime, timedelta

from django.db import models
from django.db.models import Exists, OuterRef, Q

from fleet.models import DomainEvent
from notifications.models.conversation import Conversation
from operations.models.leased import Leased

KEY = 1  # of the one row
UNSETTLED_AT_MOST = timedelta(minutes=5)  # then an event is routed without the list of causes


def events_to_route(*, now: datetime) -> models.QuerySet[DomainEvent]:
    """Returns the events that may be routed now: of each key none after one that still waits for its cause."""
    held = Q(is_settled=False, at__gt=now - UNSETTLED_AT_MOST)
    before = DomainEvent.objects.unsettled().filter(held, key=OuterRef("key"), pk__lt=OuterRef("pk"))
    return DomainEvent.objects.waiting().exclude(held).filter(~Exists(before))


def has_work(*, now: datetime) -> bool:
    """Returns whether an event is to be routed, or a second channel is to be used."""
    return events_to_route(now=now).exists() or Conversation.objects.to_escalate(now=now).exists()


class RouterQuerySet(models.QuerySet["Router"]):
    def due(self, *, now: datetime) -> "RouterQuerySet":
        return self.filter(lease_until__lte=now) if has_work(now=now) else self.none()


class Router(Leased):
    """The right to route events: one worker at a time, so that their order is kept."""

    lease_for = timedelta(seconds=30)
    queue_name = "default"

    objects = RouterQuerySet.as_manager()

    @classmethod
    def the_one(cls, *, now: datetime) -> "Router":
        return cls.objects.get_or_create(pk=KEY, defaults={"lease_until": now})[0]

    def its_row(self) -> RouterQuerySet:
        return Router.objects.filter(pk=self.pk)

    def end_lease(self, *, now: datetime) -> None:
        self.mine().update(lease_until=now)
