"""The sign-in of a command line by RFC 8628: it asks for codes, a person confirms, it polls and gets a token."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import F, Q

from edges.transition_errors import LostRace
from people.models import ApiToken, AuditEntry, DeviceAuthorization, User
from people.models.device_authorization import (
    INTERVAL_S,
    LIFE,
    LONGEST_CLIENT,
    digest_of,
    new_device_code,
    new_user_code,
    normalized_user_code,
)
from people.roster.accounts import issue, revoke

LONGEST_INTERVAL_S = 60
KEPT = timedelta(hours=1)  # after the end, so that a late poll gets a reason, and a second use is noticed
UNANSWERED = {"decided_at": None}


class NotGranted(Exception):
    """The refusal of a poll. `oauth_error` is the code of RFC 8628 3.5 and RFC 6749 5.2."""

    def __init__(self, oauth_error: str, sentence: str) -> None:
        super().__init__(sentence)
        self.oauth_error = oauth_error


@dataclass(frozen=True)
class Codes:
    """The codes of a new request. They cannot be shown again."""

    device_code: str
    user_code: str


def begin(*, client: str, address: str, now: datetime) -> Codes:
    """Writes a request that a person can confirm within 10 minutes."""
    codes = Codes(new_device_code(), new_user_code())
    printable = "".join(letter if letter.isprintable() else " " for letter in client)
    DeviceAuthorization.objects.create(
        device_digest=digest_of(codes.device_code),
        user_digest=digest_of(codes.user_code),
        client=printable[:LONGEST_CLIENT].strip(),
        address=address,
        requested_at=now,
        expires_at=now + LIFE,
        interval_s=INTERVAL_S,
    )
    return codes


def unanswered_request(typed: str, *, now: datetime) -> DeviceAuthorization | None:
    """Returns the request with this user code. None: unknown, expired or answered."""
    code = normalized_user_code(typed)
    open_ones = DeviceAuthorization.objects.filter(expires_at__gt=now, **UNANSWERED)
    return open_ones.filter(user_digest=digest_of(code)).first() if code else None


def confirm(
    request: DeviceAuthorization,
    person: User,
    *,
    name: str,
    permissions: Sequence[str],
    expires_at: datetime,
    now: datetime,
) -> None:
    """Lets the command line get a token of this person.

    :raises LostRace: when the request was answered or expired meanwhile
    """
    given = {"token_name": name, "permissions": list(permissions), "token_expires_at": expires_at}
    evidence = {"name": name, "permissions": list(permissions), "expires_at": expires_at}
    with transaction.atomic():
        _answer(request, person, is_confirmed=True, now=now, **given)
        _record(request, "device.confirm", person, now=now, **evidence)


def deny(request: DeviceAuthorization, person: User, *, now: datetime) -> None:
    """Refuses the command line a token.

    :raises LostRace: when the request was answered or expired meanwhile
    """
    with transaction.atomic():
        _answer(request, person, is_confirmed=False, now=now)
        _record(request, "device.deny", person, now=now)


def exchange(device_code: str, *, now: datetime) -> tuple[ApiToken, str]:
    """Returns the token and its secret, once. A second use of the code revokes the token.

    :raises NotGranted: when there is no token, with the reason
    """
    requests = DeviceAuthorization.objects.select_related("decided_by", "token")
    request = requests.filter(device_digest=digest_of(device_code)).first()
    if request is None:
        raise NotGranted("invalid_grant", "This device code is unknown.")
    if request.issued_at is not None:
        raise _used_twice(request, now=now)
    if request.expires_at <= now:
        raise NotGranted("expired_token", "Nobody confirmed the code in time, or the token was not fetched in time.")
    if request.is_confirmed is None:
        _count_poll(request, now=now)
        raise NotGranted("authorization_pending", "Nobody has confirmed the code yet.")
    if not request.is_confirmed or request.decided_by is None or not request.decided_by.is_active:
        raise NotGranted("access_denied", "The request was denied.")
    try:
        return _issue(request, request.decided_by, now=now)
    except LostRace as lost:
        raise _used_twice(requests.get(pk=request.pk), now=now) from lost


def forget(*, now: datetime) -> int:
    """Deletes requests that ended. The audit trail keeps the decisions."""
    return DeviceAuthorization.objects.filter(expires_at__lt=now - KEPT).delete()[0]


def _used_twice(request: DeviceAuthorization, *, now: datetime) -> NotGranted:
    """Revokes the token of the first use. Returns the refusal of the second one."""
    if request.token is not None and request.decided_by is not None:
        revoke(request.token, actor=request.decided_by.username, reason="Its code was used twice.", now=now)
    return NotGranted("invalid_grant", "This code was used before, so its token is revoked.")


def _issue(request: DeviceAuthorization, person: User, *, now: datetime) -> tuple[ApiToken, str]:
    """:raises LostRace: when another poll got the token"""
    with transaction.atomic():
        row = DeviceAuthorization.objects.filter(pk=request.pk)
        if not row.filter(issued_at=None, is_confirmed=True).update(issued_at=now):
            raise LostRace("Another poll got the token.")
        token, secret = issue(
            owner=person,
            actor=person.username,
            name=request.token_name,
            permissions=request.permissions,
            expires_at=request.token_expires_at,
            now=now,
            device=request.pk,
            address=request.address,
        )
        row.update(token=token)
    return token, secret


def _count_poll(request: DeviceAuthorization, *, now: datetime) -> None:
    """Notes a poll.

    :raises NotGranted: when the last one is too recent; the interval is then 5 s longer, as in RFC 8628 3.5
    """
    row, last = DeviceAuthorization.objects.filter(pk=request.pk), now - timedelta(seconds=request.interval_s)
    if not row.filter(Q(last_polled_at=None) | Q(last_polled_at__lte=last)).update(last_polled_at=now):
        row.filter(interval_s__lt=LONGEST_INTERVAL_S).update(interval_s=F("interval_s") + INTERVAL_S)
        raise NotGranted("slow_down", f"Poll {INTERVAL_S} s less often.")


def _answer(request: DeviceAuthorization, person: User, *, is_confirmed: bool, now: datetime, **given: object) -> None:
    row = DeviceAuthorization.objects.filter(pk=request.pk, expires_at__gt=now, **UNANSWERED)
    if not row.update(is_confirmed=is_confirmed, decided_at=now, decided_by=person, **given):
        raise LostRace("This request was answered or expired meanwhile. Run the command again.")


def _record(request: DeviceAuthorization, verb: str, person: User, *, now: datetime, **evidence: object) -> None:
    asked = {"client": request.client, "address": request.address, "requested_at": request.requested_at}
    AuditEntry.record(f"device:{request.pk}", verb=verb, actor=person.username, evidence={**asked, **evidence}, now=now)
