"""Uses the second channels of routes, where nobody has answered in time or the first message was not delivered.

A conversation says when its second channel is due, so that a killed worker loses no escalation and begins none twice.
"""

from collections.abc import Collection
from datetime import datetime

from notifications.channels.base import DeliveryAct
from notifications.models import Conversation, Delivery, DeliveryState
from notifications.rounds.batch import RoutedBatch

AT_ONCE = 200  # conversations per transaction


def escalate_due(*, now: datetime) -> tuple[int, Collection[int]]:
    """Escalates some conversations; returns how many, and the channels that have a new message.

    Call it in a transaction of the router, which alone begins conversations.
    """
    rows = Conversation.objects.to_escalate(now=now).select_related("channel", "route__escalates_to")
    due = list(rows[:AT_ONCE])
    if not due:
        return 0, ()
    batch = RoutedBatch((), now, escalating=due)
    failed = _undelivered(due)
    for conversation in due:
        since = f"{conversation.opened_at:%Y-%m-%d %H:%M} UTC"
        where = conversation.channel.name
        is_failed = (conversation.channel_id, conversation.digest_key or conversation.key) in failed
        what = "Not delivered to" if is_failed else "Nobody has answered in"
        batch.escalate(conversation, f"{what} {where} since {since}.")
    batch.answered = {conversation.key for conversation in due}
    batch.write()
    return len(due), batch.woken


def _undelivered(conversations: Collection[Conversation]) -> set[tuple[int | None, str]]:
    """Returns channels and keys whose first message is not delivered. One query."""
    keys = {row.digest_key or row.key for row in conversations}
    rows = Delivery.objects.filter(key__in=keys, act__in=(DeliveryAct.OPEN, DeliveryAct.DIGEST))
    return set(rows.exclude(state=DeliveryState.SENT).values_list("channel", "key"))
