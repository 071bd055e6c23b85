"""A person's sessions, for page and REST: their list, and their end."""

from datetime import datetime

from allauth.socialaccount.models import SocialAccount
from django.db import transaction
from django.db.models import QuerySet

from people.models import BrowserSession, User
from people.roster.accounts import record
from people.roster.mapped_people import ACTOR

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


def end_at_provider(issuer: str, subject: str | None, sid: str | None, *, now: datetime) -> int:
    """Ends the sessions of a logout at the identity provider: of the subject, and only of this `sid` if given."""
    accounts = SocialAccount.objects.filter(provider=issuer)
    if subject is not None:
        accounts = accounts.filter(uid=subject)
    if sid is not None:
        accounts = accounts.filter(user__sessions__provider_sid=sid)
    ended = 0
    for account in accounts.select_related("user").distinct():
        sessions = BrowserSession.objects.filter(user=account.user)
        ended += end_sessions(
            account.user, sessions.filter(provider_sid=sid) if sid is not None else sessions, actor=ACTOR, now=now
        )
    return ended
