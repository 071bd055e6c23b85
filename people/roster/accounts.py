"""Creation of people and grants of roles, for page, REST and commands. Each act is recorded as a decision."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.db.models import QuerySet

from edges.idempotency import EarlierCommand, IdempotencyKey, is_done
from edges.transition_errors import LostRace
from people.models import ApiToken, AuditEntry, Role, RoleBinding, User
from people.models.user import ScopeKind
from people.places import Place

CONSOLE = "shell on the server"  # the actor of a command
LONGEST_NAME = 150  # characters
NO_PASSWORD = "!"  # noqa: S105 - Django's prefix of an unusable password
ADD = "person.add"


class NameTaken(Exception):
    """The name belongs to another person, or reads the same."""


class KeyReused(Exception):
    """The idempotency key belongs to another person, or to one who was renamed or removed."""


class LastAdmin(Exception):
    """The refusal to remove the last person who can give roles."""


class HasItAlready(Exception):
    """The role was given before."""


def normalized_name(name: str) -> str:
    """Returns the name as the database stores it. A name over the limit is not normalized.

    :raises ValidationError: when the name is invalid
    """
    name = name.strip()
    if len(name) <= LONGEST_NAME:
        name = User.normalize_username(name)
    User._meta.get_field("username").clean(name, None)  # noqa: SLF001 - documented, in spite of its name
    return name


def add(name: str, *, actor: str, now: datetime, key: str = "") -> User:
    """Adds a person without role or password. A repeated `key` returns the person that the first call added.

    :raises ValidationError: when the name is invalid
    :raises NameTaken: when another person has the name
    :raises KeyReused: when the key has added another person, or the person has another name now
    """
    name = normalized_name(name)
    try:
        with transaction.atomic():
            if key:  # two that send one key at once: the second reads the first one's entry
                list(User.objects.select_for_update(no_key=True).filter(username=actor).values_list("pk"))
            if before := _added_before(name, actor=actor, key=key):
                return before
            if User.objects.filter(username__iexact=name).exists():
                raise NameTaken(f"The name {name} is taken.")
            person = User(username=name)
            person.set_unusable_password()
            person.save()
            record(person, ADD, actor=actor, now=now, **({"key": key} if key else {}))
    except IntegrityError as taken:  # by somebody else at once
        raise NameTaken(f"The name {name} is taken.") from taken
    return person


def _added_before(name: str, *, actor: str, key: str) -> User | None:
    """Returns the person that this actor's key has added already; None without a key or a person.

    :raises KeyReused: when the key has added another person, or the person has another name now
    """
    entries = AuditEntry.objects.filter(actor=actor, verb=ADD, evidence__key=key).order_by("-id")
    first = entries.first() if key else None
    if first is None:
        return None
    person = User.objects.filter(pk=first.subject.removeprefix("person:")).first()

    def key_of(username: str) -> IdempotencyKey:
        return IdempotencyKey.of(key, person=actor, verb=ADD, body={"username": username})

    added = first.evidence["person"]
    holds = person is not None and person.username == added
    now_is = f"{added} is {person.username} now." if person else f"{added} was removed."
    earlier = EarlierCommand(key_of(added), first.at, holds, lambda: now_is)
    return person if is_done(key_of(name), earlier, refusal=KeyReused) else None


def switch_off(person: User, *, actor: str, now: datetime) -> None:
    """Blocks a person at once: sign-in, tokens and open pages. Does nothing when they are blocked already.

    :raises LastAdmin: when nobody would be left who can give roles
    """
    with _keeping_an_admin():
        if User.objects.filter(pk=person.pk, is_active=True).update(is_active=False):
            record(person, "person.switch-off", actor=actor, now=now)


def switch_on(person: User, *, actor: str, now: datetime) -> None:
    with transaction.atomic():
        if User.objects.filter(pk=person.pk, is_active=False).update(is_active=True):
            record(person, "person.switch-on", actor=actor, now=now)


def grant(person: User, role: str, place: Place, *, actor: str, now: datetime) -> RoleBinding:
    """Gives a role on a place.

    :raises HasItAlready: when the person has it already
    """
    if role not in Role:
        raise ValidationError(f"Unknown role {role}. Roles: {', '.join(Role)}.")
    try:
        with transaction.atomic():
            binding = RoleBinding.objects.create(user=person, role=role, scope=place.scope, scope_id=place.key)
            record(person, "role.grant", actor=actor, now=now, role=role, on=place.name)
    except IntegrityError as error:
        raise HasItAlready(f"{person.username} is already {role} of {place.words}.") from error
    return binding


def end_role(binding: RoleBinding, place: Place | None, *, actor: str, now: datetime) -> None:
    """Ends a role. Does nothing when it has ended already. `place` None: the place was removed.

    :raises LastAdmin: when nobody would be left who can give roles
    """
    with _keeping_an_admin():
        removed, _ = RoleBinding.objects.filter(pk=binding.pk).delete()
        if removed:
            on = place.name if place else f"{binding.scope} {binding.scope_id}"
            record(binding.user, "role.take", actor=actor, now=now, role=binding.role, on=on)


def set_password(person: User, password: str, *, now: datetime) -> None:
    """Sets a person's own password, guarded by the password and the active flag that were read.

    :raises LostRace: when either changed meanwhile
    """
    was = person.password
    person.set_password(password)  # hashing is slow on purpose, so no lock is held
    with transaction.atomic():
        same = User.objects.filter(pk=person.pk, password=was, is_active=True)
        if not same.update(password=person.password):
            raise LostRace(f"{person.username} already has a new password, or is disabled.")
        record(person, "person.password", actor=person.username, now=now)


def note_password(person: User, verb: str, *, actor: str, now: datetime) -> None:
    with transaction.atomic():
        record(person, verb, actor=actor, now=now)


def _admins() -> QuerySet[RoleBinding]:
    """Returns the bindings of active fleet admins who have a password."""
    bindings = RoleBinding.objects.filter(role=Role.ADMIN, scope=ScopeKind.FLEET, user__is_active=True)
    return bindings.exclude(user__password__startswith=NO_PASSWORD)


@contextmanager
def _keeping_an_admin() -> Iterator[None]:
    """Undoes the act if it leaves no admin. Locks the bindings, so that two mutual removals run one after the other."""
    with transaction.atomic():
        list(RoleBinding.objects.select_for_update().filter(role=Role.ADMIN, scope=ScopeKind.FLEET).order_by("pk"))
        had_admin = _admins().exists()
        yield
        if had_admin and not _admins().exists():
            raise LastAdmin("This is the last admin of the fleet. Make somebody else an admin first.")


def record(person: User, verb: str, *, actor: str, now: datetime, **evidence: Any) -> None:
    User.objects.select_for_update().get(pk=person.pk)  # two writers of one chain run one after the other
    AuditEntry.record(
        f"person:{person.pk}", verb=verb, actor=actor, evidence={"person": person.username, **evidence}, now=now
    )


def issue(
    *,
    owner: User,
    actor: str,
    name: str,
    permissions: Sequence[str],
    expires_at: datetime | None,
    now: datetime,
    **more: Any,
) -> tuple[ApiToken, str]:
    """Issues a token. Returns the row and its secret, which cannot be shown again. `expires_at` None: valid until
    revoked. `more` is evidence."""
    with transaction.atomic():
        token, secret = ApiToken.issue(
            user=owner, name=name, permissions=list(permissions), now=now, expires_at=expires_at
        )
        evidence = {"owner": owner.username, "name": name, "permissions": token.permissions, "expires_at": expires_at}
        evidence |= more
        AuditEntry.record(f"token:{token.pk}", verb="token.issue", actor=actor, evidence=evidence, now=now)
    return token, secret


def revoke(token: ApiToken, *, actor: str, now: datetime, reason: str = "") -> None:
    """Revokes a token. Does nothing when it is revoked already."""
    with transaction.atomic():
        if ApiToken.objects.filter(pk=token.pk, revoked_at=None).update(revoked_at=now):
            AuditEntry.record(f"token:{token.pk}", verb="token.revoke", actor=actor, reason=reason, now=now)
