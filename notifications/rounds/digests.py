"""One message for many events at once."""

from collections import Counter, defaultdict
from datetime import datetime

from django.db.models import Count
from django.urls import reverse

from notifications.channels.base import Notification
from notifications.models import Channel, Conversation, Delivery
from notifications.models.conversation import QUIET, ConversationQuerySet
from notifications.queries import known_kinds
from notifications.texts import link_to
from wording.lists import names
from wording.numbers import count

NAMED = 8  # pools, or clusters if a node is in no pool
RULES_NAMED = 4  # of each


def digest_message(channel: Channel, delivery: Delivery, *, now: datetime) -> Notification:
    """Returns the message for all subjects that the digest names by now. Four queries."""
    named = Conversation.objects.filter(channel=channel, digest_key=delivery.key)
    rows, ended = named.open(), named.exclude(ended_at=None).count()
    by_severity = dict(rows.order_by().values_list("message__severity").annotate(Count("pk")))
    severity = next((each for each in ("critical", "warning", "note") if by_severity.get(each)), "note")
    of_each = ", ".join(f"{number} {each}" for each, number in sorted(by_severity.items()))
    number = sum(by_severity.values())
    is_quiet = delivery.key.startswith(QUIET)
    when = "from quiet hours" if is_quiet else "at once"
    parts = (
        "" if is_quiet else "Too many for a message each.",
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
        details=_by_pool(rows),
        steps=("Open the findings, and look for what they have in common.",),
        link=link_to(reverse("findings")),
    )


def _by_pool(rows: ConversationQuerySet) -> tuple[str, ...]:
    """Returns a line for each pool, the one with the most subjects first. One query."""
    columns = ("message__cluster", "message__labels__pool", "message__labels__rule", "message__labels__kind")
    titles, places = known_kinds(), defaultdict[str, Counter[str]](Counter)
    for cluster, pool, rule, kind, number in rows.order_by().values_list(*columns).annotate(Count("pk")):
        places["/".join(part for part in (cluster, pool) if part)][titles.get(rule or kind, rule or kind)] += number
    ordered = sorted(places.items(), key=lambda item: (-item[1].total(), item[0]))
    lines = [
        f"{place}: {names([f'{number} × {title}' for title, number in its.most_common()], most=RULES_NAMED)}"
        for place, its in ordered[:NAMED]
    ]
    left = len(ordered) - NAMED
    return (*lines, *((f"{count(left, 'more place')}",) if left > 0 else ()))
