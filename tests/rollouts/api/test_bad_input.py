"""What somebody may write by mistake is refused or warned of with its field, before a plan is drafted."""

import pytest

from people.models import AuditEntry
from rollouts.models import Plan
from tests.rollouts.api.test_documents import post
from tests.rollouts.bad_input import REFUSED, SAID, a_document, a_fleet_in_tiers


@pytest.mark.parametrize("what", REFUSED)
def test_what_makes_no_plan_is_refused_with_its_field(ada, what: str):
    given, field, words = REFUSED[what]

    reply = post(ada, a_document(a_fleet_in_tiers(), **given))

    assert reply.status_code == 400
    assert {each["field"]: words in each["sentence"] for each in reply.json()["errors"]} == {field: True}
    assert not Plan.objects.exists()
    assert not AuditEntry.objects.filter(verb="draft").exists()


@pytest.mark.parametrize("what", SAID)
def test_what_a_plan_could_not_do_is_said_with_its_field(ada, what: str):
    given, kind, field, words = SAID[what]

    reply = post(ada, a_document(a_fleet_in_tiers(), **given), query="?dry_run=true")

    assert reply.status_code == 200, reply.json()
    said = reply.json()["preview"][kind]
    assert [words in each["title"] for each in said if each["field"] == field].count(True) == 1, said
    assert not Plan.objects.exists()
