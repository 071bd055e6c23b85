"""How often one may guess. What is counted is what is looked up, so that no spelling of a name is a name of its own.

A name is counted together with the address it is tried from: whoever guesses at it elsewhere locks nobody out. An
address is counted for itself too, for many names tried from one place: in larger numbers, as an office may have one.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import F
from django.http import HttpRequest

from edges.digests import digest
from people.models import SignInTries, User
from people.sign_in.addresses import client_address

WINDOW = timedelta(minutes=1)
TRIES, TRIES_OF_AN_ADDRESS = 20, 100
WRONG_TOKENS = 100
LONGEST_NAME = 150  # characters; a longer one is nobody's, and is not worth spelling out


@dataclass(frozen=True)
class Budget:
    key: str
    tries: int


def looked_up(name: str) -> str:
    """A name as the database has it: `UsernameField` strips it, and Django keeps names in NFKC."""
    return User.normalize_username(name.strip()[:LONGEST_NAME])


def count_password(request: HttpRequest, name: str, *, now: datetime) -> timedelta | None:
    """Count one more try. Before the password is looked at, so that none of many at once slips through.

    :returns: how long to wait; None: it may be tried
    """
    for_name, for_address = _of_password(request, name)
    return _count(for_name, now=now) or _count(for_address, now=now)


def forgive(request: HttpRequest, name: str) -> None:
    """It was the right password: these were no guesses."""
    for_name, for_address = _of_password(request, name)
    SignInTries.objects.filter(key=for_name.key).delete()
    SignInTries.objects.filter(key=for_address.key, number__gt=0).update(number=F("number") - 1)


def count_wrong_token(request: HttpRequest, *, now: datetime) -> timedelta | None:
    """As with passwords, but afterwards: a token that is right is never made to wait for another's wrong ones."""
    return _count(Budget(_key("token", client_address(request)), WRONG_TOKENS), now=now)


def forget(*, now: datetime) -> int:
    """Windows that are over."""
    return SignInTries.objects.filter(until__lt=now - WINDOW).delete()[0]


def _of_password(request: HttpRequest, name: str) -> tuple[Budget, Budget]:
    address = client_address(request)
    return (
        Budget(_key("name", looked_up(name), address), TRIES),
        Budget(_key("address", address), TRIES_OF_AN_ADDRESS),
    )


def _key(*parts: str) -> str:
    return digest(parts)


def _count(budget: Budget, *, now: datetime) -> timedelta | None:
    """One that is over its budget costs no write: it cannot be used to keep the database busy."""
    over = SignInTries.objects.filter(key=budget.key, number__gte=budget.tries, until__gt=now).first()
    if over is not None:
        return over.until - now
    with transaction.atomic():
        # One that is there is locked by it, so that nobody forgives or forgets it before it is read.
        SignInTries.objects.bulk_create(
            [SignInTries(key=budget.key, number=0, until=now)],
            update_conflicts=True,
            unique_fields=["key"],
            update_fields=["key"],
        )
        row = SignInTries.objects.get(key=budget.key)
        if row.until <= now:
            row.number, row.until = 0, now + WINDOW
        row.number += 1
        row.save(update_fields=["number", "until"])
    return row.until - now if row.number > budget.tries else None
