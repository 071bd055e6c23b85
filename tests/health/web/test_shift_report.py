"""The shift report: what is wrong now and what was over lately, on the page, as Markdown and as a file by itself."""

import re
from datetime import timedelta
from html import unescape

import pytest

from health.inbox import shadow_mode
from health.lifecycle import FindingState
from health.models import Finding
from tests import make
from tests.make import NOON
from tests.pages import HOSTILE, page, visiting

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("now")]
REPORT, FILE = "/findings/shift-report", "/findings/shift-report.html"
REST = "/api/v1/shift-report"


@pytest.fixture
def cluster():
    return make.a_cluster("prod")


@pytest.fixture
def bob():
    return visiting(make.a_user("bob", role="viewer"))


def over(cluster, subject: str, *, hours_ago: float, **given) -> Finding:
    at = NOON - timedelta(hours=hours_ago)
    return make.a_finding(cluster, subject, state=FindingState.RESOLVED, resolved_at=at, **given)


def markdown_of(visitor) -> str:
    return unescape(re.search(r'data-copy="([^"]*)"', visitor.get(REPORT).content.decode())[1])


def test_the_worst_comes_first_and_what_is_over_long_ago_is_left_out(cluster, bob):
    make.a_finding(cluster, "node gpu-1", title="A note.", severity="note")
    make.a_finding(cluster, "node gpu-2", title="It is bad.", severity="critical", steps=["Drain it."])
    over(cluster, "node gpu-3", hours_ago=7, title="It was lately.")
    over(cluster, "node gpu-4", hours_ago=9, title="It was long ago.")
    over(cluster, "node gpu-5", hours_ago=1, title="It never opened.", opened_at=None)

    text = page(bob, REPORT).text

    assert text.index("It is bad.") < text.index("A note.") < text.index("It was lately.")
    assert "Drain it." in text
    assert "It was long ago." not in text
    assert "It never opened." not in text
    assert "It was long ago." in page(bob, f"{REPORT}?hours=12").text


def test_its_numbers_are_the_inboxs_and_their_sum_is_what_is_listed(cluster, bob):
    rows = [make.a_finding(cluster, f"node {state}", rule=f"r-{state}", state=state) for state in ("open", "muted")]
    make.a_finding(cluster, "node x", rule="r-x", parent=rows[0])

    seen = page(bob, REPORT)

    assert "2 unresolved: 1 open, 0 acknowledged, 0 being confirmed, 1 muted." in seen.text
    assert markdown_of(bob).partition("Unresolved,")[2].partition("Resolved")[0].count("\n- ") == 2
    assert "2 unresolved: 1 open, 0 acknowledged, 0 being confirmed, 1 muted" in page(bob, "/findings").text


def test_more_than_it_lists_are_counted(cluster, bob, monkeypatch):
    monkeypatch.setattr("health.inbox.shift_report.MOST", 2)
    for number in range(5):
        make.a_finding(cluster, f"node gpu-{number}", rule=f"rule-{number}")

    seen = page(bob, REPORT)

    assert "and 3 more" in seen.text
    assert "- and 3 more" in markdown_of(bob)


def test_the_rest_of_each_section_is_a_click_away(cluster, bob, monkeypatch):
    monkeypatch.setattr("health.inbox.shift_report.MOST", 1)
    for number in range(2):
        make.a_finding(cluster, f"node gpu-{number}", rule=f"rule-{number}")
        over(cluster, f"node gpu-{number}", hours_ago=1, rule=f"rule-{number}")

    links = page(bob, REPORT).links

    assert {"http://testserver/findings", "http://testserver/findings?tab=resolved"} <= set(links)
    assert 'href="http://testserver/findings?tab=resolved">all of them' in bob.get(FILE).content.decode()


def test_what_does_not_tell_how_it_is_stands_in_all_of_them(bob):
    make.a_cluster("prod", seen_at=NOON - timedelta(hours=1))

    seen = page(bob, REPORT)

    assert "late: cluster prod" in seen.text
    assert "Outdated or incomplete data:\n- cluster prod" in markdown_of(bob)


def test_an_empty_one_is_said_and_nobody_without_a_role_reads_it(cluster, bob):
    assert "Unresolved, the worst first None." in page(bob, REPORT).text
    assert "No role" in page(visiting(make.a_user("eve")), REPORT).text


def test_who_sees_nothing_of_a_cluster_reads_nothing_of_it(cluster):
    make.a_finding(cluster, "node gpu-1", title="It is secret.")
    eve = visiting(make.a_user("eve"))

    for path in (REPORT, FILE):
        assert "secret" not in eve.get(path).content.decode()


def test_the_file_asks_for_nothing_and_leads_back(cluster, bob):
    finding = make.a_finding(cluster, "node gpu-1", title="It is bad.")

    reply = bob.get(FILE)

    text = reply.content.decode()
    assert reply["Content-Disposition"].startswith('attachment; filename="shift-')
    assert f'href="http://testserver/findings?finding={finding.pk}"' in text
    assert not re.search(r"<(script|link|img|style)\b|src=", text)


@pytest.mark.parametrize("hours", ["0", "-1", "9", "8.5", "１２", "x", "999999999999"])
def test_hours_that_it_does_not_offer_are_refused_and_said(cluster, bob, hours):
    seen = page(bob, f"{REPORT}?hours={hours}")

    assert "8 hours are shown." in seen.text
    assert "Resolved in the last 8 hours" in seen.text
    reply = bob.get(FILE, {"hours": hours})
    assert (reply.status_code, "valid choice" in reply.content.decode()) == (400, True)


def test_names_are_words_in_it(cluster, bob):
    make.a_finding(cluster, f"node {HOSTILE}"[:300], title=f"{HOSTILE} is bad.", steps=[f"Look at {HOSTILE}."])

    assert f"{HOSTILE} is bad." in page(bob, REPORT).text
    assert "<script" not in bob.get(FILE).content.decode()
    assert r"\<script\>" in markdown_of(bob)


def test_rest_tells_what_the_page_tells(cluster, bob, monkeypatch):
    make.a_cluster("far", seen_at=NOON - timedelta(hours=1))
    bad = make.a_finding(cluster, "node gpu-1", title="It is bad.", node=make.a_node(cluster, "gpu-1"))
    gone = [over(cluster, f"node gpu-{number}", hours_ago=number, rule=f"r-{number}") for number in (2, 9, 10)]

    told = bob.get(REST).json()

    assert (told["at"], told["hours"], told["counts"]["unresolved"]) == ("2026-11-21T12:00:00Z", 8, 1)
    assert [line["finding"]["id"] for line in told["unresolved"]["lines"]] == [bad.pk]
    assert told["unresolved"]["lines"][0]["finding"]["impact"]["pods"] == 0
    assert [line["finding"]["id"] for line in told["resolved"]["lines"]] == [gone[0].pk]
    assert [(age["name"], age["is_late"]) for age in told["ages"]][:2] == [
        ("cluster far", True),
        ("cluster prod", False),
    ]
    assert told["markdown"] == markdown_of(bob)
    monkeypatch.setattr("health.inbox.shift_report.MOST", 1)
    longer = bob.get(REST, {"hours": 12}).json()["resolved"]
    assert (len(longer["lines"]), longer["left_out"]) == (1, 2)


@pytest.mark.parametrize("query", ["hours=9", "hours=x", "hours=", "colour=red"])
def test_rest_refuses_what_it_does_not_offer(bob, query):
    assert bob.get(f"{REST}?{query}").status_code == 400


def test_rest_tells_nothing_of_what_is_not_seen(cluster, client):
    make.a_finding(cluster, "node gpu-1", title="It is secret.")

    told = visiting(make.a_user("eve")).get(REST)

    assert (told.status_code, told.json()["ages"], told.json()["counts"]["unresolved"]) == (200, [], 0)
    assert "secret" not in told.content.decode()
    assert client.get(REST).status_code == 401


def test_it_and_the_fleet_say_that_rules_are_on_trial(cluster, bob):
    said = "1 rule is in shadow mode and notifies nobody."
    pages = [REPORT, FILE]
    before = [bob.get(path).content.decode() for path in (*pages, "/parts/findings/strip")]
    shadow_mode.begin("gpu-hot", actor="ada", reason="It is new.", now=NOON)

    told = bob.get(REST).json()

    assert not any("shadow mode" in each for each in before)
    assert [said in bob.get(path).content.decode() for path in pages] == [True, True]
    assert "1 rule in shadow mode : no notifications." in page(bob, "/parts/findings/strip").text
    assert (told["in_shadow_mode"], said in told["markdown"]) == (1, True)


def test_it_costs_no_more_for_more(cluster, bob, queries_of):
    def more(number: int) -> None:
        make.a_finding(cluster, f"node gpu-{number}", rule=f"rule-{number}", node=make.a_node(cluster, f"gpu-{number}"))

    more(0)
    one, by_rest = queries_of(bob, REPORT), queries_of(bob, REST)
    for number in range(1, 6):
        more(number)
    assert (queries_of(bob, REPORT), queries_of(bob, REST)) == (one, by_rest)
