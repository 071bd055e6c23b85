"""A person's sessions, for page and REST: their list, and their end."""

from datetime import datetime

from django.db import transaction
from django.db.models import QuerySet

from people.models import BrowserSession, User
from people.roster.accounts import record

SHOWN = 50  # sessions of a page


def sessions_of(person: User, *, now: datetime) -> QuerySet[BrowserSession]:
    """Returns the open sessions, the last used first."""
    rows = BrowserSession.objects.filter(user=person, expire_date__gt=now)
    return rows.defer("session_data").order_by("-last_used_at", "public_id")


def end_sessions(person: User, sessions: QuerySet[BrowserSession], *, actor: str, now: datetime) -> int:
    """Ends some of the person's sessions. Their open pages end within seconds. Returns the number of ended sessions."""
    with transaction.atomic():
        ended, _ = sessions.filter(user=person).order_by().delete()
        if ended:
            record(person, "session.end", actor=actor, now=now, sessions=ended)
    return ended
