"""Deletes the old part of the delivery log."""

from datetime import datetime

from fleet.retention import KEEP_EVENTS, delete
from notifications.models import Conversation, Delivery


def tidy(*, before: datetime, now: datetime) -> int:  # noqa: ARG001
    """Returns the number of deleted rows. Deliveries are kept as long as their events."""
    old = now - KEEP_EVENTS
    return delete(Delivery.objects.filter(created_at__lt=old)) + delete(Conversation.objects.filter(ended_at__lt=old))
