from __future__ import annotations

import hashlib
import secrets
from datetime import datetime, timedelta

from django.conf import settings
from django.db import models, transaction
from django.db.models import Q

from edges.locks import lock_unheld

PREFIX = "qd_"
LAST_USED_EVERY = timedelta(minutes=1)  # limits writes of a busy script


def digest_of(secret: str) -> str:
    """Returns the SHA-256. A plain hash is enough, since the secret is 256 random bits."""
    return hashlib.sha256(secret.encode()).hexdigest()


class ApiTokenQuerySet(models.QuerySet["ApiToken"]):
    def valid(self, *, now: datetime) -> ApiTokenQuerySet:
        return self.filter(Q(expires_at__isnull=True) | Q(expires_at__gt=now), revoked_at__isnull=True)


class ApiToken(models.Model):
    """A bearer token of automation. The secret is shown once; only its digest is stored."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="tokens")
    name = models.CharField(max_length=100)
    digest = models.CharField(max_length=64, unique=True)
    hint = models.CharField(max_length=12)  # the first characters, so that a person recognizes the token
    permissions = models.JSONField(default=list)  # see `people.rights.Permission`; never more than its owner has
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField(null=True)  # null: valid until revoked
    revoked_at = models.DateTimeField(null=True)
    last_used_at = models.DateTimeField(null=True)

    objects = ApiTokenQuerySet.as_manager()

    @classmethod
    def issue(
        cls, *, user, name: str, permissions: list[str], now: datetime, expires_at: datetime | None = None
    ) -> tuple[ApiToken, str]:
        """Creates a token. Returns the row and its secret, which cannot be shown again."""
        secret = PREFIX + secrets.token_urlsafe(32)
        row = cls.objects.create(
            user=user,
            name=name,
            digest=digest_of(secret),
            hint=secret[:8],
            permissions=list(permissions),
            created_at=now,
            expires_at=expires_at,
        )
        return row, secret

    @classmethod
    def of(cls, secret: str, *, now: datetime) -> ApiToken | None:
        return cls.objects.valid(now=now).select_related("user").filter(digest=digest_of(secret)).first()

    def mark_used(self, *, now: datetime) -> None:
        if self.last_used_at is None or now - self.last_used_at > LAST_USED_EVERY:
            row = ApiToken.objects.filter(pk=self.pk)
            with transaction.atomic():
                if lock_unheld(row):  # a hanging revocation must not delay its owner's halt
                    row.update(last_used_at=now)
