"""Deletes the old part of the delivery log, and ends conversations whose subject is gone."""

from datetime import datetime

from django.db import transaction

from edges.digests import digest
from fleet.retention import delete
from health.models import Finding
from maintenance.models import NodeCase
from notifications.channels.base import DeliveryAct
from notifications.models import Conversation, Delivery
from notifications.models.channel import wake_channels
from notifications.models.delivery import KEEP_LOG
from operations.models import Operation
from rollouts.models import Plan

SUBJECTS = (("finding", Finding), ("plan", Plan), ("operation", Operation), ("case", NodeCase))
GONE = "Its cluster was removed from Quarterdeck."


def tidy(*, before: datetime, now: datetime) -> int:  # noqa: ARG001
    """Returns the number of deleted rows."""
    end_orphans(now=now)
    old = now - KEEP_LOG
    return delete(Delivery.objects.filter(created_at__lt=old)) + delete(Conversation.objects.filter(ended_at__lt=old))


def end_orphans(*, now: datetime) -> int:
    """Ends conversations about subjects of removed clusters, and returns how many.

    Such a subject writes no event any more. An incident would stay open, and an alert would be sent again for ever.
    """
    ended = 0
    for conversation in _orphans():
        with transaction.atomic():
            if not conversation.end(now=now):
                continue
            ended += 1
            if not conversation.digest_key:
                message = conversation.message | {"happened": GONE, "impact": "", "steps": []}
                Delivery.objects.create(
                    channel=conversation.channel, channel_name=conversation.channel.name, key=conversation.key,
                    act=DeliveryAct.RESOLVE, message=message, digest=digest(message), created_at=now, next_try_at=now,
                )  # fmt: skip
                wake_channels([conversation.channel_id], now=now)
    return ended


def _orphans() -> list[Conversation]:
    """Returns open conversations whose subject is gone. Five queries."""
    rows = Conversation.objects.open().exclude(key__startswith="digest/").select_related("channel").order_by("pk")
    subjects = {row.pk: (row.key.split("/")[0], int(row.key.split("/")[1])) for row in rows}
    there = set()
    for kind, model in SUBJECTS:
        keys = {key for its_kind, key in subjects.values() if its_kind == kind}
        there |= {(kind, key) for key in model.objects.filter(pk__in=keys).values_list("pk", flat=True)}
    return [row for row in rows if subjects[row.pk] not in there]
