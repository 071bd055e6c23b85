import pytest
from django.contrib.auth.models import Group
from django.core.exceptions import ValidationError

from edges.transition_errors import LostRace
from people.models import AuditEntry
from people.models.audit_entry import broken_links
from people.roster import groups
from people.roster.accounts import NameTaken
from people.roster.groups import AlreadyIn
from tests.make import NOON, a_user

pytestmark = pytest.mark.django_db
ACTING = {"actor": "root", "now": NOON}


@pytest.fixture
def sre() -> Group:
    return groups.add("sre", **ACTING)


def test_every_act_on_a_group_is_kept(sre):
    amy = a_user("amy")
    groups.join(sre, amy, **ACTING)
    groups.leave(sre, amy, **ACTING)
    groups.remove(sre, **ACTING)

    entries = AuditEntry.objects.filter(subject=f"group:{sre.pk}")
    assert [entry.verb for entry in entries] == ["group.add", "group.join", "group.leave", "group.remove"]
    assert list(broken_links(entries)) == []


@pytest.mark.parametrize("name", ["two words", "a,b", "a: 1", "", "x" * 64, "\x00", "\ud800"])
def test_a_name_that_no_plan_could_write_is_refused(name):
    with pytest.raises(ValidationError):
        groups.add(name, **ACTING)


def test_a_name_is_taken_however_it_is_written(sre):
    with pytest.raises(NameTaken):
        groups.add("SRE", **ACTING)


def test_nobody_joins_twice_and_leaving_twice_is_quiet(sre):
    amy = a_user("amy")
    groups.join(sre, amy, **ACTING)

    with pytest.raises(AlreadyIn):
        groups.join(sre, amy, **ACTING)
    groups.leave(sre, amy, **ACTING)
    groups.leave(sre, amy, **ACTING)

    assert AuditEntry.objects.filter(subject=f"group:{sre.pk}").count() == 3


def test_who_joins_a_group_that_was_removed_is_told(sre):
    amy = a_user("amy")
    Group.objects.all().delete()

    with pytest.raises(LostRace):
        groups.join(sre, amy, **ACTING)
    groups.remove(sre, **ACTING)

    assert AuditEntry.objects.filter(subject=f"group:{sre.pk}").count() == 1


def test_who_is_switched_off_is_no_member(sre):
    amy, bob = a_user("amy"), a_user("bob")
    for each in (amy, bob):
        groups.join(sre, each, **ACTING)
    type(bob).objects.filter(pk=bob.pk).update(is_active=False)

    assert groups.members(["sre", "none"]) == {"sre": frozenset({"amy"})}
    assert groups.groups_of(["amy", "bob"], among=["sre"]) == {"amy": ("sre",), "bob": ()}
