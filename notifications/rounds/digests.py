"""One message for many events at once."""

from datetime import datetime

from django.db.models import Count
from django.urls import reverse

from notifications.channels.base import Notification
from notifications.models import Channel, Conversation, Delivery
from notifications.models.conversation import QUIET
from notifications.texts import link_to
from wording.lists import names
from wording.numbers import count

NAMED = 8


def digest_message(channel: Channel, delivery: Delivery, *, now: datetime) -> Notification:
    """Returns the message for all subjects that the digest names by now. Four queries."""
    named = Conversation.objects.filter(channel=channel, digest_key=delivery.key)
    rows, ended = named.open(), named.exclude(ended_at=None).count()
    by_severity = dict(rows.order_by().values_list("message__severity").annotate(Count("pk")))
    by_rule = (
        rows.order_by()
        .values_list("message__labels__rule", "message__cluster", "message__labels__pool")
        .annotate(number=Count("pk"))
    )
    largest = by_rule.order_by("-number")[: NAMED + 1]
    severity = next((each for each in ("critical", "warning", "note") if by_severity.get(each)), "note")
    of_each = ", ".join(f"{number} {each}" for each, number in sorted(by_severity.items()))
    number = sum(by_severity.values())
    listed = [
        f"{many} × {rule or 'plan'} in {cluster}{f'/{pool}' if pool else ''}" for rule, cluster, pool, many in largest
    ]
    is_quiet = delivery.key.startswith(QUIET)
    when = "from quiet hours" if is_quiet else "at once"
    parts = (
        "" if is_quiet else "Too many for a message each.",
        f"{names(listed, most=NAMED)}." if listed else "",
        f"{count(ended, 'subject')} ended meanwhile." if ended else "",
    )
    return Notification(
        key=Notification.read(delivery.message).key,
        kind="digest",
        title=f"{count(number, 'subject')} {when}: {of_each or 'all of them have ended'}",
        severity=severity,
        at=now,
        since=delivery.created_at,
        summary=" ".join(part for part in parts if part),
        steps=("Open the findings, and look for what they have in common.",),
        link=link_to(reverse("findings")),
    )
