"""Step-up: approvals, overrides and changes of people need a sign-in of the last minutes.

A token cannot sign in, so it is not asked. `people.rights` decides what a token may do.
"""

from datetime import UTC, datetime, timedelta

from django.conf import settings
from django.contrib.sessions.backends.base import SessionBase
from django.utils import timezone
from rest_framework.request import Request

from edges.requests import PersonRequest
from people.models import User

CONFIRMED_AT = "confirmed_at"  # in the session: seconds since 1970 of the last sign-in


class NotConfirmed(Exception):
    """The refusal of an act, because the person's last sign-in is too long ago."""


def confirm_session(session: SessionBase, *, at: datetime | None) -> None:
    """Notes when the person signed in last. None: the identity provider did not send the time."""
    session[CONFIRMED_AT] = at.timestamp() if at else 0


def is_recent(at: datetime | None) -> bool:
    """Tells whether a sign-in at this time is recent enough."""
    return at is not None and timezone.now() - at <= timedelta(minutes=settings.STEP_UP_MINUTES)


def require_recent_sign_in(request: PersonRequest | Request) -> None:
    """Refuses a session whose last sign-in is more than `QUARTERDECK_STEP_UP_MINUTES` ago.

    :raises NotConfirmed: with the sentence for the person
    """
    is_token = isinstance(request.user, User) and request.user.token is not None
    if not settings.STEP_UP_MINUTES or is_token:
        return
    if not is_recent(datetime.fromtimestamp(request.session.get(CONFIRMED_AT, 0), UTC)):
        raise NotConfirmed(
            f"Your last sign-in is more than {settings.STEP_UP_MINUTES} minutes ago. Sign in again, then repeat this."
        )
