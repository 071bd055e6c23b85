"""Decisions as OCSF events: classes, activities and required fields as in OCSF 1.5.0."""

import pytest

from people.ocsf import event_of
from tests.make import NOON

EVERY = {"category_uid", "class_uid", "activity_id", "type_uid", "time", "severity_id", "metadata"}  # required
PERSON = {"person": "bob"}


def event(verb: str, subject: str, **evidence):
    row = {
        "id": 7, "at": NOON, "actor": "ada", "verb": verb, "subject": subject, "number": 1, "reason": "incident 4711",
        "evidence": evidence, "previous_hash": "0", "hash": "1",
    }  # fmt: skip
    return event_of(row, instance="default", version="0.1.0")


@pytest.mark.parametrize(
    ("verb", "subject", "evidence", "type_uid", "own"),
    [
        ("person.add", "person:3", PERSON, 300101, "user"),
        ("person.switch-off", "person:3", PERSON, 300105, "user"),
        ("person.second-factor-removal", "person:3", PERSON, 300111, "user"),
        ("role.grant", "person:3", PERSON | {"role": "admin", "on": "fleet"}, 300501, "privileges"),
        ("group.join", "group:2", PERSON | {"group": "oncall"}, 300603, "group"),
        ("channel.add", "channel:1", {"name": "ops"}, 300401, "entity"),
        ("token.revoke", "token:1", {}, 300404, "entity"),
        ("pause", "plan-7", {}, 300412, "entity"),
        ("approve", "plan-7", {"stage": 1}, 300499, "entity"),
        ("person.preferences", "person:3", PERSON, 300499, "entity"),
    ],
)
def test_each_decision_is_an_event_of_its_class(verb, subject, evidence, type_uid, own):
    found = event(verb, subject, **evidence)

    assert (found["type_uid"], found["category_uid"]) == (type_uid, 3)
    assert found.keys() >= EVERY | {own}
    assert found["metadata"].keys() >= {"product", "version"}
    assert (found["time"], found["activity_name"]) == (1795262400000, verb)


def test_a_decision_about_a_person_keeps_its_reason_and_evidence():
    evidence = PERSON | {"kind": "passkey", "name": "key ring"}

    rest = event("person.second-factor", "person:3", **evidence)["unmapped"]

    assert (rest["reason"], rest["evidence"]) == ("incident 4711", evidence)


def test_an_entity_has_the_reason_and_the_evidence_and_the_hashes_stay():
    found = event("approve", "plan-7", stage=1)

    assert found["comment"] == "incident 4711"
    assert found["entity"] == {"type_id": 99, "type": "plan", "uid": "7", "name": "plan-7", "data": {"stage": 1}}
    assert found["unmapped"] == {"subject": "plan-7", "number": 1, "hash": "1", "previous_hash": "0"}
    assert (event("break-glass", "plan-7")["severity_id"], event("start-refused", "plan-7")["status_id"]) == (3, 2)
