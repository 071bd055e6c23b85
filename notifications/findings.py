"""Findings about notifications that a channel has not accepted."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Max, Q
from django.urls import reverse

from fleet.models import Cluster
from health.evaluation.finding_sources import FindingSource
from health.rules.base import Problem, Severity
from notifications.models import Delivery, DeliveryState
from notifications.rounds.channel_round import BEGINNINGS, UNDELIVERED_AFTER
from wording.numbers import count
from wording.reports import LONGEST_SUMMARY, EvidenceItem, fit, instant

KEY = "notification-undelivered"
WITHIN = timedelta(days=1)  # a message is given up after a day at most
MOST = 500  # messages that are counted exactly


def undelivered_messages(cluster: Cluster, *, now: datetime) -> Iterator[tuple[str, Problem]]:
    """Yields the channels that have not accepted the beginning of a conversation. One query, and one more with any.

    A message about such a finding does not count, so that a finding never keeps itself open.
    """
    stuck = Q(state=DeliveryState.DEAD) | Q(state=DeliveryState.WAITING, attempts__gte=UNDELIVERED_AFTER)
    recent = Delivery.objects.filter(created_at__gt=now - WITHIN, event__cluster=cluster, act__in=BEGINNINGS)
    rows = recent.filter(stuck, channel__is_on=True).exclude(message__labels__rule=KEY)
    found = list(rows.select_related("channel").order_by("pk")[:MOST])
    if not found:
        return
    sent = recent.filter(state=DeliveryState.SENT, key__in={row.key for row in found})
    last_sent = {(channel, key): pk for channel, key, pk in sent.values_list("channel", "key").annotate(Max("pk"))}
    by_channel: dict[str, list[Delivery]] = defaultdict(list)
    for row in found:
        if row.pk > last_sent.get((row.channel_id, row.key), 0):
            by_channel[row.channel_name].append(row)
    for name, its in by_channel.items():
        newest = its[-1]
        yield (
            f"channel {name}",
            Problem(
                severity=Severity.WARNING,
                title=fit("Channel {} has not accepted notifications", name),
                summary=fit("{}", newest.sentence or "There was no answer.", longest=LONGEST_SUMMARY),
                evidence=(
                    EvidenceItem("Messages", count(len(its), "message")),
                    instant("Oldest", its[0].created_at),
                    EvidenceItem("Newest", newest.message["title"]),
                ),
                facts={"channel": newest.channel_id},
                identity=name,
            ),
        )


def _page(facts: Mapping[str, Any]) -> str:
    return reverse("channel", args=[facts["channel"]])


UNDELIVERED = FindingSource(
    KEY,
    "Notification undelivered",
    timedelta(0),  # the attempts took their time
    undelivered_messages,
    "A channel refused the first message of an event, or did not accept it in five attempts.",
    _page,
    (
        "Read the receiver's own words on the page of the channel.",
        "Renew the secret or correct the address, then use Test.",
        "Send the failed messages again from the delivery log.",
    ),
    "notifications",
    timedelta(minutes=1),
)
