"""The second factors of a person: their list, and their removal. Each act is recorded as a decision."""

from datetime import datetime

from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from allauth.mfa.totp.internal.auth import TOTP
from allauth.mfa.webauthn.internal.auth import WebAuthn
from django.db import transaction
from django.db.models import QuerySet

from people.models import User
from people.roster.accounts import record


def factors_of(person: User) -> QuerySet[Authenticator]:
    """Returns the person's factors without the recovery codes, the oldest first."""
    return Authenticator.objects.filter(user=person).exclude(type=Authenticator.Type.RECOVERY_CODES).order_by("pk")


def add_app(person: User, secret: str, *, now: datetime) -> None:
    """Adds an app that computes codes. It replaces an earlier app."""
    with transaction.atomic():
        record(person, "person.second-factor", actor=person.username, now=now, kind="app")
        Authenticator.objects.filter(user=person, type=Authenticator.Type.TOTP).delete()
        TOTP.activate(person, secret)


def add_passkey(person: User, name: str, credential: dict[str, object], *, now: datetime) -> None:
    with transaction.atomic():
        record(person, "person.second-factor", actor=person.username, now=now, kind="passkey", name=name)
        WebAuthn.add(person, name, credential)


def renew_recovery_codes(person: User, *, now: datetime) -> list[str]:
    """Replaces the recovery codes. Returns the new ones; each works once."""
    with transaction.atomic():
        record(person, "person.recovery-codes", actor=person.username, now=now)
        Authenticator.objects.filter(user=person, type=Authenticator.Type.RECOVERY_CODES).delete()
        return list(RecoveryCodes.activate(person).generate_codes())


def remove(person: User, factors: QuerySet[Authenticator], *, actor: str, now: datetime) -> None:
    """Removes factors. Without a factor the recovery codes go too. Does nothing when there are none."""
    with transaction.atomic():
        if removed := factors.filter(user=person).order_by().delete()[0]:
            record(person, "person.second-factor-removal", actor=actor, now=now, removed=removed)
        if not factors_of(person).exists():
            Authenticator.objects.filter(user=person).delete()
