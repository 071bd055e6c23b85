"""Decisions in REST: a list, and a file of JSON lines that a reader continues."""

import json
from datetime import timedelta

import pytest

from edges.digests import digest
from people.models import AuditEntry
from tests.callers import calling
from tests.make import NOON, a_token, a_user

EARLIER = NOON - timedelta(hours=1)
pytestmark = pytest.mark.filterwarnings("ignore:StreamingHttpResponse must consume asynchronous")


def decide(number: int, *, at=EARLIER) -> list[AuditEntry]:
    return [AuditEntry.record("plan-1", verb="halt", actor="ada", evidence={"n": n}, now=at) for n in range(number)]


def lines(client, query: str = "") -> list[dict]:
    answer = client.get(f"/api/v1/audit-entries.jsonl{query}")
    assert (answer.status_code, answer["Content-Type"]) == (200, "application/x-ndjson")
    return [json.loads(line) for line in b"".join(answer).splitlines()]


def test_a_reader_continues_after_the_last_line(root, monkeypatch):
    monkeypatch.setattr("people.api.audit.LINES", 2)
    monkeypatch.setattr("people.audit_trail.AT_ONCE", 1)
    entries = decide(3)

    first = lines(root)
    second = lines(root, f"?after={first[-1]['id']}")

    assert [line["id"] for line in first + second] == [entry.pk for entry in entries]
    assert first[0]["evidence"] == {"n": 0}
    assert second[0]["previous_hash"] == first[-1]["hash"]


def test_a_decision_waits_until_no_earlier_one_can_be_written(root):
    decide(1)
    decide(1, at=NOON)

    assert len(lines(root)) == 1
    assert root.get("/api/v1/audit-entries").json()["count"] == 2


def test_a_reader_verifies_a_line_without_the_database(root):
    AuditEntry.record(
        "plan-1",
        verb="halt",
        actor="ada",
        reason="Xid 79, ½",
        evidence={"n": 0.5},
        now=EARLIER + timedelta(microseconds=7),
    )

    (line,) = lines(root)

    covered = ("previous_hash", "subject", "number", "at", "actor", "verb", "reason", "evidence")
    assert digest([line[name] for name in covered]) == line["hash"]


def test_a_wrong_filter_is_refused(root):
    for query in (
        "since=x",
        "until=0001-01-01T00:00%2B14:00",
        "after=x",
        "after=0",
        "colour=red",
        "actor=" + "x" * 151,
    ):
        assert root.get(f"/api/v1/audit-entries.jsonl?{query}").status_code == 400


def test_only_admins_of_the_fleet_read_it_also_by_token(root, ada):
    clerk = a_user("clerk", role="admin")

    assert ada.get("/api/v1/audit-entries.jsonl").status_code == 403
    assert calling(token=a_token(clerk, permissions=["see"])).get("/api/v1/audit-entries.jsonl").status_code == 403
    assert lines(calling(token=a_token(clerk, permissions=["administer"]))) == []


def test_an_entry_waits_for_one_before_it_that_was_recorded_with_a_later_time(root):
    decide(1, at=NOON)
    decide(1)

    assert lines(root) == []
