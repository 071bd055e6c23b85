"""Groups of people: Django's own. A group gives no right: a plan may ask that some of those who approve are of one.

What the page, REST and the commands do; each act is kept as a decision.
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
NAME = re.compile(r"[\w.+-]{1,63}")  # as a plan writes it down: a word, without spaces, commas and colons


class AlreadyIn(Exception):
    """The person is in the group."""


def every_group() -> QuerySet[Group]:
    return Group.objects.order_by("name").prefetch_related(Prefetch("user_set", User.objects.order_by("username")))


def members(names: Iterable[str]) -> dict[str, frozenset[str]]:
    """Group → who is in it and switched on. Only groups that there are. Two queries."""
    people = Prefetch("user_set", User.objects.filter(is_active=True))
    rows = Group.objects.filter(name__in=list(names)).prefetch_related(people)
    return {row.name: frozenset(each.username for each in row.user_set.all()) for row in rows}


def groups_of(names: Iterable[str], *, among: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Person → in which of these groups they are now, for each of the people named. Two queries, none for no group."""
    among, names = list(among), list(names)
    inside = members(among) if among and names else {}
    return {name: tuple(sorted(group for group, people in inside.items() if name in people)) for name in names}


def spelt_name(name: str) -> str:
    """:raises ValidationError: when it is no name"""
    name = name.strip()
    if not NAME.fullmatch(name):
        raise ValidationError(f"A group is called by one word of at most {LONGEST_NAME} letters, digits and . + - _")
    return name


def add(name: str, *, actor: str, now: datetime) -> Group:
    """:raises ValidationError: when it is no name
    :raises NameTaken: when there is such a group, or one that reads the same
    """
    name = spelt_name(name)
    taken = NameTaken(f"There is a group {name} already.")
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
    """A plan that asks for its members waits until it is made again. Quiet when somebody was faster."""
    with transaction.atomic():
        if _is_there(group):
            _record(group, "group.remove", actor=actor, now=now, members=sorted(_names(group)))
            Group.objects.filter(pk=group.pk).delete()


def join(group: Group, person: User, *, actor: str, now: datetime) -> None:
    """:raises AlreadyIn: when the person is in it
    :raises LostRace: when the group was removed since
    """
    with transaction.atomic():
        if not _is_there(group):
            raise LostRace(f"Somebody has removed the group {group.name}.")
        if person.username in _names(group):
            raise AlreadyIn(f"{person.username} is in {group.name} already.")
        group.user_set.add(person)
        _record(group, "group.join", actor=actor, now=now, person=person.username)


def leave(group: Group, person: User, *, actor: str, now: datetime) -> None:
    """Their approvals as one of the group are void at the next round of each plan. Quiet when they are not in it."""
    with transaction.atomic():
        if _is_there(group) and person.username in _names(group):
            group.user_set.remove(person)
            _record(group, "group.leave", actor=actor, now=now, person=person.username)


def _is_there(group: Group) -> bool:
    """Locks it: two who change a group do so one after the other."""
    return Group.objects.select_for_update().filter(pk=group.pk).first() is not None


def _names(group: Group) -> set[str]:
    return set(group.user_set.values_list("username", flat=True))


def _record(group: Group, verb: str, *, actor: str, now: datetime, **evidence: Any) -> None:
    said: Mapping[str, Any] = {"group": group.name, **evidence}
    AuditEntry.record(f"group:{group.pk}", verb=verb, actor=actor, evidence=said, now=now)
