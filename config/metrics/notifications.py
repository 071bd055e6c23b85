"""Notifications: what waits, what was delivered, and channels that fail."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from django.db.models import Count, Min
from prometheus_client.core import GaugeMetricFamily, Metric

from fleet.models import DomainEvent
from notifications.models import Channel, Delivery
from notifications.models.delivery import DeliveryState

DAY = timedelta(days=1)


def families(now: datetime) -> Iterator[Metric]:
    yield from _channels()
    yield from _waiting(now)
    text = "Messages of the last 24 hours, by channel and state."
    deliveries = GaugeMetricFamily("quarterdeck_deliveries", text, labels=["channel", "state"])
    recent = Delivery.objects.filter(created_at__gte=now - DAY).order_by()
    for name, state, number in recent.values_list("channel_name", "state").annotate(Count("pk")):
        deliveries.add_metric([name, DeliveryState(state).name.lower()], number)
    yield deliveries


def _channels() -> Iterator[Metric]:
    text = "1: the receiver did not accept the last message or the last heartbeat of this channel."
    failing = GaugeMetricFamily("quarterdeck_channel_failing", text, labels=["channel"])
    text = "Time of the last message that the receiver accepted."
    last = GaugeMetricFamily("quarterdeck_channel_last_delivery_timestamp_seconds", text, labels=["channel"])
    text = "Time of the last heartbeat that the receiver accepted."
    heartbeat = GaugeMetricFamily("quarterdeck_channel_heartbeat_timestamp_seconds", text, labels=["channel"])
    for channel in Channel.objects.shared().filter(is_on=True):
        failing.add_metric([channel.name], channel.is_failing)
        if channel.delivered_at:
            last.add_metric([channel.name], channel.delivered_at.timestamp())
        if channel.heartbeat_at:
            heartbeat.add_metric([channel.name], channel.heartbeat_at.timestamp())
    yield from (failing, last, heartbeat)


def _waiting(now: datetime) -> Iterator[Metric]:
    """Yields the ages of the oldest event without a route and of the oldest message not yet sent; 0 without any."""
    text = "Age of the oldest event that no worker has routed yet."
    event = DomainEvent.objects.waiting().order_by().aggregate(at=Min("at"))["at"]
    yield GaugeMetricFamily("quarterdeck_event_waiting_seconds", text, value=_age(event, now))
    text = "Age of the oldest message that is to be sent, or sent again."
    created_at = Delivery.objects.waiting().aggregate(at=Min("created_at"))["at"]
    yield GaugeMetricFamily("quarterdeck_delivery_waiting_seconds", text, value=_age(created_at, now))


def _age(since: datetime | None, now: datetime) -> float:
    return max(0.0, (now - since).total_seconds()) if since else 0.0
