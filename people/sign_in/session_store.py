"""The store of sessions. It is Django's store in the database, with columns for the list of a person's sessions.

Middleware loads the row in each request anyway, so the time of the last use costs no query, and one write a minute.
"""

import re
from contextlib import suppress
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any, cast

from django.conf import settings
from django.contrib.auth import SESSION_KEY
from django.contrib.sessions.backends import db
from django.contrib.sessions.backends.base import SessionBase
from django.db import DatabaseError, transaction
from django.http import HttpRequest
from django.utils import timezone

from edges.locks import lock_unheld
from people.models import BrowserSession
from people.models.browser_session import LONGEST_BROWSER, LONGEST_SID
from people.sign_in.addresses import client_address
from people.sign_in.step_up import confirm_session

ORIGIN = "origin"  # where the session began, in its data
USED_EVERY = timedelta(minutes=1)  # limits the writes of a busy page
LONGEST_USER_AGENT = 400  # characters that are read
# The first match counts: Edge and Opera also name Chrome, Chrome also names Safari, Android also names Linux.
BROWSERS = {"Edg": "Edge", "OPR": "Opera", "Firefox": "Firefox", "Chrome": "Chrome", "Safari": "Safari"}
SYSTEMS = {
    "Windows": "Windows",
    "Android": "Android",
    "iPhone": "iOS",
    "iPad": "iOS",
    "Mac OS": "macOS",
    "Linux": "Linux",
}


class SessionStore(db.SessionStore):
    @classmethod
    def get_model_class(cls) -> type[BrowserSession]:
        return BrowserSession

    def create_model_instance(self, data: dict[str, Any]) -> BrowserSession:
        row = cast("BrowserSession", super().create_model_instance(data))
        origin = data.get(ORIGIN, {})
        row.public_id = sha256(row.session_key.encode()).hexdigest()[:32]
        row.user_id = data.get(SESSION_KEY)
        row.address, row.browser = origin.get("address", ""), origin.get("browser", "")
        row.provider_sid = origin.get("sid", "")
        row.signed_in_at = datetime.fromisoformat(origin["at"]) if origin else None
        row.last_used_at = timezone.now()
        return row

    def _get_session_from_db(self) -> BrowserSession | None:
        row: BrowserSession | None = super()._get_session_from_db()  # type: ignore[misc] # the stubs leave it out
        if row is not None and (now := timezone.now()) - row.last_used_at > USED_EVERY:
            used = BrowserSession.objects.filter(pk=row.pk)
            # A page is readable with a full disk. The list of sessions then shows the earlier time.
            with suppress(DatabaseError), transaction.atomic():
                if lock_unheld(used):  # a hanging transaction must not delay the request
                    used.update(last_used_at=now)
        return row


def begin_session(request: HttpRequest, **_: Any) -> None:
    """Sets the end of a new session, and notes its browser. Django would move the end with each change."""
    now = timezone.now()
    request.session.set_expiry(now + timedelta(seconds=settings.SESSION_COOKIE_AGE))
    origin = {"at": now.isoformat(), "address": client_address(request), "browser": browser_of(request)}
    request.session[ORIGIN] = origin
    confirm_session(request.session, at=now)


def note_provider_session(session: SessionBase, sid: Any) -> None:
    """Notes the provider's id of the sign-in, if it sent one, so that its logout finds the session."""
    if isinstance(sid, str) and len(sid) <= LONGEST_SID:
        session[ORIGIN] = session[ORIGIN] | {"sid": sid}


def browser_of(request: HttpRequest) -> str:
    """Returns the name of the client, such as `Firefox on Linux` or `curl/8.5.0`."""
    sent = request.headers.get("User-Agent", "")[:LONGEST_USER_AGENT]
    browser = next((name for sign, name in BROWSERS.items() if f"{sign}/" in sent), "")
    system = next((name for sign, name in SYSTEMS.items() if sign in sent), "")
    if browser:
        return f"{browser} on {system}" if system else browser
    return re.sub(r"[^\x20-\x7e]", "", sent.partition(" ")[0])[:LONGEST_BROWSER]
