from __future__ import annotations

import hashlib
import re
import secrets
import string
import zlib
from collections.abc import Mapping
from datetime import datetime, timedelta

from django.conf import settings
from django.db import models, transaction
from django.db.models import Q
from django.utils.crypto import constant_time_compare, salted_hmac

from edges.locks import lock_unheld

ALPHABET = string.ascii_letters + string.digits
# The prefix and the key id are public. The checksum lets scanners and us recognize a token without asking anybody.
FORMAT = re.compile(r"(?P<body>qd_(?P<key_id>[0-9A-Za-z]{9})_[0-9A-Za-z]{40})(?P<checksum>[0-9a-f]{8})")
USUAL_LIFE = timedelta(days=90)
LAST_USED_EVERY = timedelta(minutes=1)  # limits writes of a busy script
OWN_KEY = "secret-key"  # the pepper id of an installation without peppers


def new_secret() -> str:
    body = f"qd_{_random_text(9)}_{_random_text(40)}"
    return body + checksum_of(body)


def key_id_in(secret: str) -> str:
    """Returns the key id of a well-formed token. Blank: it is no token, is incomplete, or is older than key ids."""
    parts = FORMAT.fullmatch(secret)
    return parts["key_id"] if parts and parts["checksum"] == checksum_of(parts["body"]) else ""


def checksum_of(body: str) -> str:
    return f"{zlib.crc32(body.encode()):08x}"


def digest_of(secret: str, pepper: str | None) -> str:
    """Returns the HMAC-SHA-256. `pepper` None: keyed with the secret key of the installation."""
    return salted_hmac("people.ApiToken", secret, secret=pepper, algorithm="sha256").hexdigest()


def plain_digest_of(secret: str) -> str:
    """Returns the SHA-256, by which tokens without a key id are looked up."""
    return hashlib.sha256(secret.encode()).hexdigest()


def peppers() -> Mapping[str, str | None]:
    """Returns the peppers by id, the newest first. New tokens use the first one."""
    return {**settings.TOKEN_PEPPERS, OWN_KEY: None}


def _random_text(length: int) -> str:
    return "".join(secrets.choice(ALPHABET) for _ in range(length))


class ApiTokenQuerySet(models.QuerySet["ApiToken"]):
    def valid(self, *, now: datetime) -> ApiTokenQuerySet:
        return self.filter(Q(expires_at__isnull=True) | Q(expires_at__gt=now), revoked_at__isnull=True)


class ApiToken(models.Model):
    """A bearer token of automation. The secret is shown once; only its keyed digest is stored.

    Rows without a key id were made by earlier versions. Their digest has no key.
    """

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="tokens")
    name = models.CharField(max_length=100)
    key_id = models.CharField(max_length=9, db_default="")  # the public part, by which it is looked up
    pepper_id = models.CharField(max_length=32, db_default="")  # the key of the digest; see `peppers`
    digest = models.CharField(max_length=64, unique=True)
    hint = models.CharField(max_length=12)  # the first characters, so that a person recognizes the token
    permissions = models.JSONField(default=list)  # see `people.rights.Permission`; never more than its owner has
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField(null=True)  # null: valid until revoked
    revoked_at = models.DateTimeField(null=True)
    last_used_at = models.DateTimeField(null=True)
    last_used_from = models.CharField(max_length=64, db_default="")  # address

    objects = ApiTokenQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["key_id"], condition=~Q(key_id=""), name="one_token_per_key_id")]

    @classmethod
    def issue(
        cls, *, user, name: str, permissions: list[str], now: datetime, expires_at: datetime | None
    ) -> tuple[ApiToken, str]:
        """Creates a token. Returns the row and its secret, which cannot be shown again."""
        secret = new_secret()
        pepper_id, pepper = next(iter(peppers().items()))
        row = cls.objects.create(
            user=user,
            name=name,
            key_id=key_id_in(secret),
            pepper_id=pepper_id,
            digest=digest_of(secret, pepper),
            hint=secret[:12],
            last_used_from="",
            permissions=list(permissions),
            created_at=now,
            expires_at=expires_at,
        )
        return row, secret

    @classmethod
    def of(cls, secret: str, *, now: datetime) -> ApiToken | None:
        """Returns the valid token with this secret. A token whose pepper is no longer configured has ended."""
        valid = cls.objects.valid(now=now).select_related("user")
        if not (key_id := key_id_in(secret)):
            return valid.filter(key_id="", digest=plain_digest_of(secret)).first()
        token, known = valid.filter(key_id=key_id).first(), peppers()
        if token is None or token.pepper_id not in known:
            return None
        is_it = constant_time_compare(token.digest, digest_of(secret, known[token.pepper_id]))
        return token if is_it else None

    def mark_used(self, *, now: datetime, address: str) -> None:
        if self.last_used_at is None or now - self.last_used_at > LAST_USED_EVERY:
            row = ApiToken.objects.filter(pk=self.pk)
            with transaction.atomic():
                if lock_unheld(row):  # a hanging revocation must not delay its owner's halt
                    row.update(last_used_at=now, last_used_from=address)
