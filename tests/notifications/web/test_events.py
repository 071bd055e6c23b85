"""The page of events, its file and REST: who sees what, the filters, and who was notified."""

import csv
import io
from datetime import timedelta
from importlib import import_module

import pytest
from django.apps import apps
from django.db import connection
from django.test.utils import CaptureQueriesContext

from fleet.models import DomainEvent, GoneNode
from maintenance.lifecycle import CaseState
from notifications.api.events import DomainEventList
from notifications.events import receivers_of
from operations import commands
from tests import make
from tests.callers import calling, now  # noqa: F401 (a fixture)
from tests.make import NOON
from tests.notifications.make import a_channel, catch_all
from tests.pages import HOSTILE, page, visiting

pytestmark = [pytest.mark.django_db, pytest.mark.sqlite]


@pytest.fixture
def ada():
    return make.a_user("ada", role="admin")


@pytest.fixture
def cluster():
    return make.a_cluster("eu-1", mode="operate")


@pytest.fixture
def pool(cluster):
    return make.a_pool(cluster, "h100")


@pytest.fixture
def node(cluster, pool):
    return make.a_node(cluster, "gpu-1", pool=pool)


@pytest.fixture
def night(cluster, node):
    """A finding and a case of a node, an operation, a plan, and a finding of another cluster."""
    finding = make.a_finding(cluster, node=node, title="GPU 3 lost", severity="critical")
    make.an_event_of(finding, at=NOON - timedelta(hours=30))
    make.an_event_of(finding, "finding.resolved", at=NOON - timedelta(hours=2), reason="")
    make.a_case(node, state=CaseState.IN_REPAIR).move(CaseState.RETIRED, actor="bob", reason="RMA 7.", now=NOON)
    commands.start(cluster, "quarantine", [make.a_node(cluster, "gpu-2")], actor="bob", reason="Fan.", now=NOON)
    facts = {"plan": 7, "title": "H100", "severity": "note", "actor": "bob", "reason": "CVE."}
    DomainEvent.write([DomainEvent.of("plan.started", "plan/7", cluster_id=cluster.pk, at=NOON, facts=facts)])
    make.an_event_of(make.a_finding(make.a_cluster("us-1"), title="API server slow", severity="warning"), at=NOON)


def listed(user, query: str = "") -> list[str]:
    answer = calling(user).get(f"/api/v1/events{query}")
    assert answer.status_code == 200, answer.content
    return [row["kind"] for row in answer.json()["results"]]


@pytest.mark.usefixtures("night", "now")
@pytest.mark.parametrize(
    ("query", "kinds"),
    [
        ("", ["finding.opened", "plan.started", "operation.started", "case.finished", "finding.resolved",
              "finding.opened"]),
        ("?cluster=us-1", ["finding.opened"]),
        ("?cluster=nowhere", []),
        ("?kind=plan", ["plan.started"]),
        ("?kind=finding.resolved", ["finding.resolved"]),
        ("?severity=critical", ["finding.resolved", "finding.opened"]),
        ("?hours=24&kind=finding", ["finding.opened", "finding.resolved"]),
        ("?until=2026-11-21T00:00:00Z&since=2026-11-19", ["finding.opened"]),
        ("?object=gpu-1", ["case.finished", "finding.resolved", "finding.opened"]),
        ("?object=gpu-9", []),
    ],
)  # fmt: skip
def test_page_file_and_rest_have_the_same_events(ada, query, kinds):
    shown = page(visiting(ada), f"/events{query}")
    file = b"".join(visiting(ada).get(f"/events.csv{query}")).decode()
    rows = list(csv.DictReader(io.StringIO(file)))

    assert listed(ada, query) == kinds == [row["kind"] for row in rows]
    assert all(row["sentence"] in shown.text for row in rows)
    assert ("No event matches." in shown.text) is not bool(kinds)


def test_the_severity_of_an_earlier_version_is_filled_and_found(cluster, ada):
    for key, facts in enumerate(({"severity": "critical"}, {"severity": "note"}, {})):
        DomainEvent.write([DomainEvent.of("plan.started", f"plan/{key}", cluster_id=cluster.pk, at=NOON, facts=facts)])
    DomainEvent.objects.update(severity="")

    import_module("fleet.migrations.0018_severity_of_events").fill_severity(apps, None)

    assert list(DomainEvent.objects.values_list("severity", flat=True)) == ["critical", "note", ""]
    assert len(listed(ada, "?severity=critical")) == 1


def test_an_event_of_a_later_version_has_no_page(cluster, ada):
    DomainEvent.objects.create(
        cluster=cluster, kind="room.flooded", key="room/b-7", at=NOON, facts={"reason": "Rain."}, routed_at=NOON
    )

    (row,) = calling(ada).get("/api/v1/events").json()["results"]
    shown = page(visiting(ada), "/events")

    assert (row["page"], row["sentence"]) == ("", "Room b-7: Rain.")
    assert "Room b-7: Rain." in shown.text
    assert "" not in shown.links


def test_a_node_named_like_an_object_has_its_own_events(cluster, ada):
    make.an_event_of(make.a_finding(cluster, node=make.a_node(cluster, "case-12")))

    assert listed(ada, "?object=case-12") == ["finding.opened"]


@pytest.mark.usefixtures("night")
def test_an_object_has_its_own_events(ada):
    plan = DomainEvent.objects.get(kind="plan.started")
    facts = plan.facts | {"stage_name": "Canary"}
    wanted = DomainEvent.of("plan.approval-wanted", "plan/7/stage/3", cluster_id=plan.cluster_id, at=NOON, facts=facts)
    DomainEvent.write([wanted])

    assert listed(ada, f"?object={plan.key}") == ["plan.approval-wanted", "plan.started"]
    assert listed(ada, f"?object={plan.key.replace('/', ' %23')}")
    assert listed(ada, f"?object={plan.key}0") == []


@pytest.mark.usefixtures("night")
def test_who_sees_a_pool_sees_the_events_about_its_nodes(pool, node):
    amy = make.a_user("amy", role="viewer", on=pool)
    about_node = ["case.finished", "finding.resolved", "finding.opened"]

    assert listed(amy) == listed(amy, f"?pool={pool.pk}") == about_node
    gone = GoneNode.objects.create(cluster=node.cluster, node_id=node.pk, uid=node.uid, name=node.name, gone_at=NOON)
    gone.pools.add(pool)
    node.delete()

    assert listed(amy) == about_node
    assert listed(make.a_user("eve")) == []
    assert listed(amy, f"?pool={make.a_pool(pool.cluster, 'other').pk}") == []


def test_a_stage_is_an_event_of_its_pool(ada, cluster, pool):
    DomainEvent.write(
        [
            DomainEvent.of("plan.approval-wanted", "plan/1/stage/2", cluster_id=cluster.pk, at=NOON, pool_id=pool.pk,
                           facts={"plan": 1, "title": "H100", "stage_name": "Canary"})
        ]
    )  # fmt: skip

    assert listed(ada, f"?pool={pool.pk}") == ["plan.approval-wanted"]
    assert listed(make.a_user("amy", role="viewer", on=pool)) == []


def test_the_page_says_which_channels_were_sent_a_message(ada, cluster, pool, route_and_send):
    catch_all(a_channel("pager", "webhook", address="https://hooks.example.org"))
    make.an_event_of(make.a_finding(cluster))
    DomainEvent.settle([DomainEvent.objects.get().pk], cluster_id=cluster.pk)
    route_and_send()

    assert "pager" in page(visiting(ada), "/parts/events").text
    assert "Sent to" in page(visiting(ada), "/parts/events").text
    others = page(visiting(make.a_user("amy", role="viewer", on=cluster)), "/parts/events").text
    assert "pager" not in others
    assert "Sent to" not in others


@pytest.mark.usefixtures("now")
def test_who_got_an_event_is_unknown_once_its_log_is_deleted(ada, cluster):
    finding = make.a_finding(cluster)
    old, new = (make.an_event_of(finding, at=NOON - timedelta(days=days)) for days in (91, 89))

    assert receivers_of([old, new], ada, now=NOON) == {old.pk: ["not known"], new.pk: []}
    assert "not known" in page(visiting(ada), "/parts/events").text


def test_the_count_of_rest_is_bounded_unless_by_offset(ada, cluster, monkeypatch):
    monkeypatch.setattr(DomainEventList, "count_at_most", 2)
    finding = make.a_finding(cluster)
    for _ in range(3):
        make.an_event_of(finding)

    assert calling(ada).get("/api/v1/events").json()["count"] == 2
    assert calling(ada).get("/api/v1/events?offset=0").json()["count"] == 3


def test_older_ones_are_a_page_further_and_a_page_is_one_query(ada, cluster):
    finding = make.a_finding(cluster)
    make.an_event_of(finding)
    for number in range(60):
        make.an_event_of(finding, "finding.resolved", reason=f"of test {number}")

    with CaptureQueriesContext(connection) as asked:
        first = page(visiting(ada), "/events")
    of_events = [each["sql"] for each in asked if "fleet_domainevent" in each["sql"]]
    (older,) = [link for link in first.links if "before=" in link]

    assert "as of test 59:" in first.text
    assert "as of test 5:" not in first.text
    assert "as of test 5:" in page(visiting(ada), older).text
    assert len(of_events) == 1


@pytest.mark.parametrize(
    ("query", "field"),
    [("?kind=x", "kind"), ("?since=tomorrow", "since"), ("?pool=h100", "pool"), ("?hours=0", "hours")],
)
def test_a_wrong_filter_is_named(ada, query, field):
    assert f"{field}: " in page(visiting(ada), f"/events{query}", status=400).text
    assert visiting(ada).get(f"/events.csv{query}").status_code == 400
    answer = calling(ada).get(f"/api/v1/events{query}")
    assert (answer.status_code, [each["field"] for each in answer.json()["errors"]]) == (400, [field])


def test_an_empty_page_says_what_comes(ada):
    assert "No events yet." in page(visiting(ada), "/events").text


def test_hostile_facts_are_text(ada, cluster):
    make.an_event_of(make.a_finding(cluster, title=HOSTILE[:70]), "finding.muted", actor=HOSTILE, reason="{title.x}")

    shown = page(visiting(ada), "/events")

    assert "{title.x}" in shown.text
    assert HOSTILE in shown.text


def test_a_filter_is_saved_as_a_view(ada):
    query = "kind=finding&hours=8"

    sent = {"name": "Night", "query": f"{query}&before=7"}
    assert calling(ada).post("/api/v1/event-views", sent, format="json").status_code == 201

    assert calling(ada).get("/api/v1/event-views").json()["results"][0]["query"] == query
    assert "Night" in page(visiting(ada), f"/events?{query}").text
