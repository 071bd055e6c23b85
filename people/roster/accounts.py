"""Making people and giving them roles: what the page and the commands do. Each act is kept as a decision."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.db.models import QuerySet

from edges.transition_errors import LostRace
from people.models import ApiToken, AuditEntry, Role, RoleBinding, User
from people.models.user import ScopeKind
from people.places import Place

CONSOLE = "whoever has a shell here"  # the actor of a command
LONGEST_NAME = 150  # characters
NO_PASSWORD = "!"  # noqa: S105 - what Django begins a password with that nobody can have


class NameTaken(Exception):
    """Somebody has that name, or one that reads the same."""


class LastAdmin(Exception):
    """Nobody would be left who can give roles."""


class HasItAlready(Exception):
    """The role was given before."""


def spelt_name(name: str) -> str:
    """As the database has it. A longer one than may be is not worth spelling out.

    :raises ValidationError: when it is no name
    """
    name = name.strip()
    if len(name) <= LONGEST_NAME:
        name = User.normalize_username(name)
    User._meta.get_field("username").clean(name, None)  # noqa: SLF001 - documented, in spite of its name
    return name


def add(name: str, *, actor: str, now: datetime, key: str = "") -> User:
    """Somebody who has no role and no password yet. `key`: the same again is the same command, carried out once.

    :raises ValidationError: when it is no name
    :raises NameTaken: when it is somebody's
    """
    name = spelt_name(name)
    if User.objects.filter(username__iexact=name).exists():
        return _added_before(name, actor=actor, key=key)
    try:
        with transaction.atomic():
            person = User(username=name)
            person.set_unusable_password()
            person.save()
            _record(person, "person.add", actor=actor, now=now, **({"key": key} if key else {}))
    except IntegrityError:
        return _added_before(name, actor=actor, key=key)
    return person


def _added_before(name: str, *, actor: str, key: str) -> User:
    """Who was added by this very command.

    :raises NameTaken: when it was another
    """
    if key and (person := User.objects.filter(username=name).first()):
        first = AuditEntry.objects.filter(subject=f"person:{person.pk}", number=1).first()
        if first and (first.verb, first.actor, first.evidence.get("key")) == ("person.add", actor, key):
            return person
    raise NameTaken(f"There is a {name} already.")


def switch_off(person: User, *, actor: str, now: datetime) -> None:
    """At once: pages, tokens and open pages end. Quiet when it is so already.

    :raises LastAdmin: when nobody would be left who can give roles
    """
    with _keeping_an_admin():
        if User.objects.filter(pk=person.pk, is_active=True).update(is_active=False):
            _record(person, "person.switch-off", actor=actor, now=now)


def switch_on(person: User, *, actor: str, now: datetime) -> None:
    with transaction.atomic():
        if User.objects.filter(pk=person.pk, is_active=False).update(is_active=True):
            _record(person, "person.switch-on", actor=actor, now=now)


def grant(person: User, role: str, place: Place, *, actor: str, now: datetime) -> RoleBinding:
    """:raises HasItAlready: when it was given before"""
    if role not in Role:
        raise ValidationError(f"There is no role {role}. There are: {', '.join(Role)}.")
    try:
        with transaction.atomic():
            binding = RoleBinding.objects.create(user=person, role=role, scope=place.scope, scope_id=place.key)
            _record(person, "role.grant", actor=actor, now=now, role=role, on=place.name)
    except IntegrityError as error:
        raise HasItAlready(f"{person.username} is {role} of {place.words} already.") from error
    return binding


def take(binding: RoleBinding, place: Place | None, *, actor: str, now: datetime) -> None:
    """End a role. Quiet when somebody was faster. `place` None: what it was given on is gone.

    :raises LastAdmin: when nobody would be left who can give roles
    """
    with _keeping_an_admin():
        gone, _ = RoleBinding.objects.filter(pk=binding.pk).delete()
        if gone:
            on = place.name if place else f"{binding.scope} {binding.scope_id}"
            _record(binding.user, "role.take", actor=actor, now=now, role=binding.role, on=on)


def set_password(person: User, password: str, *, now: datetime) -> None:
    """By themselves, as they are seen here: where they have another by now, or are switched off, they stay so.

    :raises LostRace: where it is so
    """
    was = person.password
    person.set_password(password)  # first: it takes a while on purpose, and nobody has to wait for it
    with transaction.atomic():
        same = User.objects.filter(pk=person.pk, password=was, is_active=True)
        if not same.update(password=person.password):
            raise LostRace(f"{person.username} has another password by now, or is switched off.")
        _record(person, "person.password", actor=person.username, now=now)


def note_password(person: User, verb: str, *, actor: str, now: datetime) -> None:
    with transaction.atomic():
        _record(person, verb, actor=actor, now=now)


def _admins() -> QuerySet[RoleBinding]:
    """Those who can sign in and give any role."""
    bindings = RoleBinding.objects.filter(role=Role.ADMIN, scope=ScopeKind.FLEET, user__is_active=True)
    return bindings.exclude(user__password__startswith=NO_PASSWORD)


@contextmanager
def _keeping_an_admin() -> Iterator[None]:
    """All of it or nothing. The rows are locked first: two who take each other's role do so one after the other."""
    with transaction.atomic():
        list(RoleBinding.objects.select_for_update().filter(role=Role.ADMIN, scope=ScopeKind.FLEET).order_by("pk"))
        had_one = _admins().exists()
        yield
        if had_one and not _admins().exists():
            raise LastAdmin("Nobody would be left who can give roles. Make somebody else an admin of the fleet first.")


def _record(person: User, verb: str, *, actor: str, now: datetime, **evidence: Any) -> None:
    User.objects.select_for_update().get(pk=person.pk)  # two writers of one chain, one after the other
    AuditEntry.record(
        f"person:{person.pk}", verb=verb, actor=actor, evidence={"person": person.username, **evidence}, now=now
    )


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
