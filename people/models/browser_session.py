from __future__ import annotations

from django.conf import settings
from django.contrib.sessions.base_session import AbstractBaseSession
from django.db import models

LONGEST_BROWSER = 60  # characters
LONGEST_SID = 255


class BrowserSession(AbstractBaseSession):
    """A session, with the columns by which its person recognizes it. `people.sign_in.session_store` writes it.

    The session key is a secret, so pages and REST name a session by its `public_id`.
    """

    public_id = models.CharField(max_length=32, unique=True)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, null=True, related_name="sessions")
    address = models.CharField(max_length=64, blank=True)
    browser = models.CharField(max_length=LONGEST_BROWSER, blank=True)
    signed_in_at = models.DateTimeField(null=True)  # null: nobody is signed in
    last_used_at = models.DateTimeField()
    # The identity provider's id of the sign-in (claim `sid`), by which its logout names the session.
    provider_sid = models.CharField(max_length=LONGEST_SID, blank=True, db_index=True)
