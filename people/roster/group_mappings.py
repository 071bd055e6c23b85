"""The mapping of the identity provider's groups to roles, for page and REST. Each act is recorded as a decision."""

from datetime import datetime

from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction

from people.models import AuditEntry, GroupMapping
from people.models.mapped_group import LONGEST_GROUP
from people.places import Place
from people.roster.accounts import HasItAlready


def add(group: str, role: str, place: Place, *, actor: str, now: datetime) -> GroupMapping:
    """Gives a role on a place to everybody in a group, from their next sign-in on.

    :raises ValidationError: when the group has no name, or one that is too long
    :raises HasItAlready: when the group has the role already
    """
    group = group.strip()
    if not group or len(group) > LONGEST_GROUP:
        raise ValidationError(f"Write the name or id of a group, at most {LONGEST_GROUP} characters.")
    try:
        with transaction.atomic():
            mapping = GroupMapping.objects.create(group=group, role=role, scope=place.scope, scope_id=place.key)
            _record(mapping, "mapping.add", place.name, actor=actor, now=now)
    except IntegrityError as error:
        raise HasItAlready(f"The group {group} has the role {role} of {place.words} already.") from error
    return mapping


def remove(mapping: GroupMapping, *, actor: str, now: datetime) -> None:
    """Removes a mapping. Does nothing when it is removed already."""
    with transaction.atomic():
        if GroupMapping.objects.filter(pk=mapping.pk).delete()[0]:
            _record(mapping, "mapping.remove", f"{mapping.scope} {mapping.scope_id}", actor=actor, now=now)


def _record(mapping: GroupMapping, verb: str, on: str, *, actor: str, now: datetime) -> None:
    evidence = {"group": mapping.group, "role": mapping.role, "on": on}
    AuditEntry.record(f"mapping:{mapping.pk}", verb=verb, actor=actor, evidence=evidence, now=now)
