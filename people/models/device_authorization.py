from __future__ import annotations

import re
import secrets
from datetime import timedelta

from django.conf import settings
from django.db import models
from django.utils.crypto import salted_hmac

from people.models.api_token import ApiToken

LIFE = timedelta(minutes=10)
INTERVAL_S = 5  # between two polls, as in RFC 8628 3.2
LETTERS = "BCDFGHJKLMNPQRSTVWXZ"  # no vowels, no digits, as in RFC 8628 6.1
LENGTH = 8  # letters of a user code
LONGEST_CLIENT = 60  # characters


def new_device_code() -> str:
    return secrets.token_urlsafe(32)


def new_user_code() -> str:
    code = "".join(secrets.choice(LETTERS) for _ in range(LENGTH))
    return f"{code[:4]}-{code[4:]}"


def digest_of(code: str) -> str:
    """Returns the keyed digest of a device code or a user code. A user code is short, so a plain digest could be
    reversed."""
    return salted_hmac("people.DeviceAuthorization", code, algorithm="sha256").hexdigest()


def normalized_user_code(typed: str) -> str:
    """Returns a typed code as it was shown. Blank: it cannot be a code."""
    letters = re.sub(r"[\s-]", "", typed[:50]).upper()
    return f"{letters[:4]}-{letters[4:]}" if len(letters) == LENGTH and set(letters) <= set(LETTERS) else ""


class DeviceAuthorization(models.Model):
    """A request of a command line for a token (RFC 8628). A person confirms or denies it in the browser.

    The codes are secrets; only their keyed digests are stored.
    """

    device_digest = models.CharField(max_length=64, unique=True)
    user_digest = models.CharField(max_length=64, unique=True)
    client = models.CharField(max_length=LONGEST_CLIENT)  # as the client names itself; nobody checked it
    address = models.CharField(max_length=64)
    requested_at = models.DateTimeField()
    expires_at = models.DateTimeField(db_index=True)
    interval_s = models.PositiveSmallIntegerField()
    last_polled_at = models.DateTimeField(null=True)
    decided_at = models.DateTimeField(null=True)  # null: nobody has answered
    decided_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, null=True, related_name="+")
    is_confirmed = models.BooleanField(null=True)
    token_name = models.CharField(max_length=100)
    permissions = models.JSONField(default=list)
    token_expires_at = models.DateTimeField(null=True)
    issued_at = models.DateTimeField(null=True)  # the code is used
    token = models.OneToOneField(ApiToken, models.CASCADE, null=True, related_name="+")
