"""Groups of people, as Django's `Group`. A group gives no permission; a plan may require approvals from its members.

Page, REST and commands use these functions. Each act is recorded as a decision.
"""

import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from django.contrib.auth.models import Group
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.db.models import Prefetch, QuerySet

from edges.transition_errors import LostRace
from people.models import AuditEntry, User
from people.roster.accounts import NameTaken

LONGEST_NAME = 63
NAME = re.compile(r"[\w.+-]{1,63}")  # as plans write it: one word without spaces, commas and colons


class AlreadyIn(Exception):
    """The person is in the group."""


def every_group() -> QuerySet[Group]:
    return Group.objects.order_by("name").prefetch_related(Prefetch("user_set", User.objects.order_by("username")))


def members(names: Iterable[str]) -> dict[str, frozenset[str]]:
    """Returns the active members of each existing group. Two queries."""
    people = Prefetch("user_set", User.objects.filter(is_active=True))
    rows = Group.objects.filter(name__in=list(names)).prefetch_related(people)
    return {row.name: frozenset(member.username for member in row.user_set.all()) for row in rows}


def groups_of(names: Iterable[str], *, among: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Returns for each named person their groups among `names`. Two queries; none without groups."""
    among, names = list(among), list(names)
    inside = members(among) if among and names else {}
    return {name: tuple(sorted(group for group, people in inside.items() if name in people)) for name in names}


def normalized_name(name: str) -> str:
    """Returns the stripped name.

    :raises ValidationError: when the name is invalid
    """
    name = name.strip()
    if not NAME.fullmatch(name):
        raise ValidationError(f"A group name is one word of at most {LONGEST_NAME} letters, digits and . + - _")
    return name


def add(name: str, *, actor: str, now: datetime) -> Group:
    """Adds a group.

    :raises ValidationError: when the name is invalid
    :raises NameTaken: when a group has the name, or one that reads the same
    """
    name = normalized_name(name)
    taken = NameTaken(f"The group name {name} is taken.")
    if Group.objects.filter(name__iexact=name).exists():
        raise taken
    try:
        with transaction.atomic():
            group = Group.objects.create(name=name)
            _record(group, "group.add", actor=actor, now=now)
    except IntegrityError as clash:
        raise taken from clash
    return group


def remove(group: Group, *, actor: str, now: datetime) -> None:
    """Removes a group. A plan that requires its members waits. Does nothing when the group is removed already."""
    with transaction.atomic():
        if _is_there(group):
            _record(group, "group.remove", actor=actor, now=now, members=sorted(_names(group)))
            Group.objects.filter(pk=group.pk).delete()


def join(group: Group, person: User, *, actor: str, now: datetime) -> None:
    """Adds a person to a group.

    :raises AlreadyIn: when the person is a member
    :raises LostRace: when the group was removed
    """
    with transaction.atomic():
        if not _is_there(group):
            raise LostRace(f"Somebody removed the group {group.name}.")
        if person.username in _names(group):
            raise AlreadyIn(f"{person.username} is already a member of {group.name}.")
        group.user_set.add(person)
        _record(group, "group.join", actor=actor, now=now, person=person.username)


def leave(group: Group, person: User, *, actor: str, now: datetime) -> None:
    """Removes a person from a group; does nothing if they are no member. Each plan voids their approvals as a member
    in its next round.
    """
    with transaction.atomic():
        if _is_there(group) and person.username in _names(group):
            group.user_set.remove(person)
            _record(group, "group.leave", actor=actor, now=now, person=person.username)


def _is_there(group: Group) -> bool:
    """Locks the group, so that two changes run one after the other."""
    return Group.objects.select_for_update().filter(pk=group.pk).first() is not None


def _names(group: Group) -> set[str]:
    return set(group.user_set.values_list("username", flat=True))


def _record(group: Group, verb: str, *, actor: str, now: datetime, **evidence: Any) -> None:
    content: Mapping[str, Any] = {"group": group.name, **evidence}
    AuditEntry.record(f"group:{group.pk}", verb=verb, actor=actor, evidence=content, now=now)
