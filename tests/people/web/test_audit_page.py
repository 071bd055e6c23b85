"""The page of decisions, asked by an admin of the fleet, an admin of one cluster and a viewer."""

from datetime import timedelta

import pytest

from people.models import AuditEntry
from people.roster import accounts
from tests import make
from tests.pages import HOSTILE, page, visiting

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("now")]


@pytest.fixture
def root():
    return visiting(make.a_user("root", role="admin"))


def decide(subject: str, verb: str = "halt", *, actor: str = "ada", reason: str = "", at=make.NOON, **evidence):
    return AuditEntry.record(subject, verb=verb, actor=actor, reason=reason, evidence=evidence, now=at)


def test_shows_who_did_what_to_which_object_and_why(root):
    plan = make.a_plan()
    decide("automatic-quarantine-3")

    seen = page(root, "/audit")

    assert f"plan-{plan.pk}" in seen.text
    assert "start" in seen.text
    assert {f"/plans/{plan.pk}", "/maintenance/automatic/3"} <= set(seen.links)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("actor=amy", ["b"]),
        ("kind=plan", ["a"]),
        ("subject=pool:3", ["b"]),
        ("kind=prices", ["d"]),
        ("since=2026-11-21T11:00", ["b", "c", "d"]),
        ("until=2026-11-21", ["a"]),
        ("kind=plan&actor=amy", []),
    ],
)
def test_filters_by_person_object_kind_and_time(root, query, expected):
    decide("plan-7", reason="reason-a", at=make.NOON - timedelta(days=1))
    decide("pool:3", reason="reason-b", actor="amy")
    decide("domain-budget:1:rack", reason="reason-c")
    decide("prices", reason="reason-d")

    text = page(root, f"/audit?{query}").text

    assert [letter for letter in "abcd" if f"reason-{letter}" in text] == expected


def test_offers_the_kinds_of_sign_ins_logs_prices_and_receivers(root):
    assert {"device", "pod", "prices", "repair-receiver"} <= set(page(root, "/audit").words)


def test_an_invalid_filter_is_named(root):
    answer = root.get("/audit?since=yesterday")

    assert answer.status_code == 400
    assert "since: Enter a valid date/time." in answer.content.decode()


def test_reports_an_altered_entry_and_a_missing_one(root):
    assert "intact" in page(root, f"/audit?subject={decide('pool:1').subject}").text
    for subject in ("plan-1", "plan-2"):
        decide(subject)
        decide(subject)
    AuditEntry.objects.filter(subject="plan-1", number=2).update(reason="Other")
    AuditEntry.objects.filter(subject="plan-2", number=1).delete()

    text = page(root, "/audit?kind=plan").text

    assert "2 entries of 3 on this page: altered" in text
    assert "Altered: its content was changed." in text
    assert "Altered: the entry before it is missing." in text


def test_older_ones_are_a_page_further(root, monkeypatch):
    monkeypatch.setattr("people.web.audit_page.AT_ONCE", 2)
    first, _, _ = (decide("plan-1") for _ in range(3))

    seen = page(root, "/audit")

    assert [link for link in seen.links if "before=" in link] == [f"?before={first.pk + 1}"]
    assert "#1" in page(root, f"/audit?before={first.pk + 1}").text


def test_only_admins_of_the_fleet_see_it(root):
    somewhere = make.a_user("eva", role="admin", on=make.a_cluster())

    answers = [visiting(person).get("/audit").status_code for person in (somewhere, make.a_user("bob", role="viewer"))]

    assert answers == [403, 403]


def test_no_secret_is_in_a_row_and_no_text_is_markup(root):
    person = accounts.add("pat", actor="root", now=make.NOON)
    _, secret = accounts.issue(
        owner=person, actor="pat", name="ci", permissions=["see"], now=make.NOON, expires_at=None
    )
    decide("plan-1", reason=HOSTILE, note=HOSTILE)

    html = root.get("/audit").content.decode()

    assert "token.issue" in html
    assert secret not in html
    assert "<script>alert" not in html
