"""Issuing and revoking API tokens. Both are kept as decisions: whoever has a token acts in its owner's name."""

from collections.abc import Sequence
from datetime import datetime

from django.db import transaction

from people.models import ApiToken, AuditEntry, User


def issue(
    *, owner: User, actor: str, name: str, permissions: Sequence[str], expires_at: datetime | None, now: datetime
) -> tuple[ApiToken, str]:
    """The second value is the secret, which nobody can show again. `expires_at` None: until it is revoked."""
    with transaction.atomic():
        token, secret = ApiToken.issue(
            user=owner, name=name, permissions=list(permissions), now=now, expires_at=expires_at
        )
        evidence = {"owner": owner.username, "name": name, "permissions": token.permissions, "expires_at": expires_at}
        AuditEntry.record(f"token:{token.pk}", verb="token.issue", actor=actor, evidence=evidence, now=now)
    return token, secret


def revoke(token: ApiToken, *, actor: str, now: datetime) -> None:
    """Quiet when it is revoked already: that is what was wanted."""
    with transaction.atomic():
        if ApiToken.objects.filter(pk=token.pk, revoked_at=None).update(revoked_at=now):
            AuditEntry.record(f"token:{token.pk}", verb="token.revoke", actor=actor, now=now)
