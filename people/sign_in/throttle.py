"""Limits on guesses of passwords and tokens. Names are counted as they are looked up, so spellings share one
counter.

A name is counted per client address, so guesses from elsewhere lock nobody out. An address has its own larger limit,
since an office may share one.
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
LOGOUTS = 1_000
DEVICE_REQUESTS, DEVICE_REQUESTS_OF_ALL = 20, 200
USER_CODES = 20
LONGEST_NAME = 150  # characters; no account has a longer name


@dataclass(frozen=True)
class Budget:
    key: str
    tries: int
    window: timedelta = WINDOW


def normalized_name(name: str) -> str:
    """Returns a name as the database stores it: `UsernameField` strips it, and Django normalizes names to NFKC."""
    return User.normalize_username(name.strip()[:LONGEST_NAME])


def count_password(request: HttpRequest, name: str, *, now: datetime) -> timedelta | None:
    """Counts one more try, before the password is checked, so that parallel tries cannot slip through.

    :returns: how long to wait; None: the try is allowed
    """
    for_name, for_address = _password_budgets(request, name)
    return _count(for_name, now=now) or _count(for_address, now=now)


def forgive(request: HttpRequest, name: str) -> None:
    """Removes tries from the counters after the right password."""
    for_name, for_address = _password_budgets(request, name)
    SignInTries.objects.filter(key=for_name.key).delete()
    SignInTries.objects.filter(key=for_address.key, number__gt=0).update(number=F("number") - 1)


def count_wrong_token(request: HttpRequest, *, now: datetime) -> timedelta | None:
    """Counts a wrong token. A right token never waits for wrong ones."""
    return _count(Budget(_key("token", client_address(request)), WRONG_TOKENS), now=now)


def count_redirect(request: HttpRequest, *, now: datetime) -> timedelta | None:
    """Counts a way to the identity provider, which costs a session and a request to the provider."""
    return _count(Budget(_key("redirect", client_address(request)), TRIES_OF_AN_ADDRESS), now=now)


def count_logout(request: HttpRequest, *, now: datetime) -> timedelta | None:
    """Counts a logout token, whose check costs two requests to the provider. A provider may end many sessions."""
    return _count(Budget(_key("logout", client_address(request)), LOGOUTS), now=now)


def count_device_request(request: HttpRequest, *, now: datetime) -> timedelta | None:
    """Counts a request of a command line for a code, which costs a row. Many addresses together have a limit, too."""
    of_address = Budget(_key("device", client_address(request)), DEVICE_REQUESTS)
    return _count(of_address, now=now) or _count(Budget(_key("device"), DEVICE_REQUESTS_OF_ALL), now=now)


def count_user_code(person: User, *, now: datetime) -> timedelta | None:
    """Counts a look-up of a user code, before it is looked up, so that nobody can guess the codes of others."""
    return _count(Budget(_key("user code", str(person.pk)), USER_CODES), now=now)


def is_first_use(token_id: str, *, within: timedelta, now: datetime) -> bool:
    """Counts the use of a token that is valid once. `within` is the time in which it could be used again."""
    return _count(Budget(_key("once", token_id), 1, within), now=now) is None


def forget(*, now: datetime) -> int:
    """Deletes windows that ended."""
    return SignInTries.objects.filter(until__lt=now - WINDOW).delete()[0]


def _password_budgets(request: HttpRequest, name: str) -> tuple[Budget, Budget]:
    address = client_address(request)
    return (
        Budget(_key("name", normalized_name(name), address), TRIES),
        Budget(_key("address", address), TRIES_OF_AN_ADDRESS),
    )


def _key(*parts: str) -> str:
    return digest(parts)


def _count(budget: Budget, *, now: datetime) -> timedelta | None:
    """Counts one try. A budget that is exceeded costs no write, so it cannot keep the database busy."""
    exceeded = SignInTries.objects.filter(key=budget.key, number__gte=budget.tries, until__gt=now).first()
    if exceeded is not None:
        return exceeded.until - now
    with transaction.atomic():
        # The upsert locks an existing row, so that nobody deletes or resets it before it is read.
        SignInTries.objects.bulk_create(
            [SignInTries(key=budget.key, number=0, until=now)],
            update_conflicts=True,
            unique_fields=["key"],
            update_fields=["key"],
        )
        row = SignInTries.objects.get(key=budget.key)
        if row.until <= now:
            row.number, row.until = 0, now + budget.window
        row.number += 1
        row.save(update_fields=["number", "until"])
    return row.until - now if row.number > budget.tries else None
