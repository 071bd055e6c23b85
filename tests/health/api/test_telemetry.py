"""Sources of telemetry, and what is known of a node's GPUs, as REST has them."""

from datetime import timedelta

import pytest

from health.models import TelemetrySource
from health.sources import history
from people.models import AuditEntry
from tests import make
from tests.callers import calling
from tests.health.telemetry.prometheus.a_server import a_closed_port
from tests.make import NOON

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("now")]
ADDRESS = "https://192.0.2.1"


@pytest.fixture
def cluster():
    return make.a_cluster("eu-1")


def place(cluster) -> str:
    return f"/api/v1/clusters/{cluster.pk}/telemetry-source"


def test_an_admin_adds_and_changes_it(root, cluster):
    assert root.get(place(cluster)).status_code == 404

    said = root.put(place(cluster), {"url": ADDRESS, "matchers": 'cluster="eu-1"'}, format="json")

    assert (said.status_code, said.json()["state"], said.json()["matchers"]) == (200, "waiting", 'cluster="eu-1"')
    assert root.put(place(cluster), {"url": ADDRESS, "is_on": False}, format="json").json()["state"] == "off"
    assert TelemetrySource.objects.get().matchers == ""  # PUT says all of it
    assert [entry.verb for entry in AuditEntry.objects.all()] == ["telemetry.put", "telemetry.put"]


def test_who_says_what_they_read_replaces_nothing_else(root, bob, cluster):
    read = root.put(place(cluster), {"url": ADDRESS}, format="json").json()["mark"]
    root.put(place(cluster), {"url": ADDRESS, "is_on": False}, format="json")

    late = root.put(place(cluster), {"url": ADDRESS, "matchers": 'cluster="eu-1"', "was": read}, format="json")

    assert (late.status_code, late.json()["type"]) == (409, "urn:quarterdeck:problem:lost-race")
    assert (TelemetrySource.objects.get().matchers, TelemetrySource.objects.get().is_on) == ("", False)
    assert bob.get(place(cluster)).json()["mark"] is None
    by_now = root.get(place(cluster)).json()["mark"]
    assert root.put(place(cluster), {"url": ADDRESS, "was": by_now}, format="json").status_code == 200


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"url": "ftp://x"}, "url"),
        ({"url": "http://169.254.169.254/latest"}, "url"),
        ({"url": ADDRESS, "matchers": "eu"}, "matchers"),
        ({"url": ADDRESS, "secret_from": "sesame"}, "secret_from"),
        ({"url": ADDRESS, "token": "sesame"}, "token"),
    ],
)
def test_what_cannot_be_a_source_is_refused_by_its_field(root, cluster, given, field):
    said = root.put(place(cluster), given, format="json")

    assert said.status_code == 400
    assert [error["field"] for error in said.json()["errors"]] == [field]
    assert not TelemetrySource.objects.exists()


def test_says_how_it_goes(bob, cluster):
    make.a_source(
        cluster, answered_at=NOON - timedelta(seconds=20), state="silent", message="The server cannot be reached",
        secret_from="env:QUARTERDECK_SOURCE_P", user="reader",
    )  # fmt: skip

    (said,) = bob.get("/api/v1/telemetry-sources").json()["results"]

    assert (said["state"], said["message"], said["age_s"]) == ("silent", "The server cannot be reached", 20.0)
    assert said["exported"] == ["temperature_celsius"]
    assert "xid" in said["not_exported"]
    assert "row_remap_pending" in said["to_be_switched_on"]
    assert said["user"] is said["secret_from"] is None


def test_one_that_nobody_asked_for_a_while_is_late_here_as_on_its_page(bob, cluster):
    make.a_source(cluster, answered_at=NOON - timedelta(minutes=5), state="answering")

    assert bob.get(place(cluster)).json()["state"] == "late"

    TelemetrySource.objects.update(answered_at=NOON - timedelta(seconds=20))
    assert bob.get(place(cluster)).json()["state"] == "answering"


def test_an_admin_sees_where_its_secret_is(root, cluster):
    make.a_source(cluster, secret_from="env:QUARTERDECK_SOURCE_P")

    assert root.get(place(cluster)).json()["secret_from"] == "env:QUARTERDECK_SOURCE_P"


def test_who_may_change_it_and_who_may_have_it_asked(ada, bob, eve, cluster):
    make.a_source(cluster)
    body = {"url": ADDRESS}

    assert [who.put(place(cluster), body, format="json").status_code for who in (ada, bob, eve)] == [403, 403, 404]
    assert [who.delete(place(cluster)).status_code for who in (ada, bob, eve)] == [403, 403, 404]
    attempts = f"{place(cluster)}/attempts"
    assert [who.post(attempts).status_code for who in (ada, bob, eve)] == [204, 403, 404]
    assert TelemetrySource.objects.get().url == "https://prometheus.example.org"


def test_one_that_is_off_is_not_asked(ada, cluster):
    make.a_source(cluster, is_on=False, state="off")

    said = ada.post(f"{place(cluster)}/attempts")

    assert (said.status_code, said.json()["type"]) == (409, "urn:quarterdeck:problem:source-off")


def test_removing_it(root, cluster):
    make.a_source(cluster)

    assert root.delete(place(cluster)).status_code == 204
    assert root.delete(place(cluster)).status_code == 404


def test_a_viewer_of_one_pool_sees_only_its_nodes_and_no_source(cluster):
    pool = make.a_pool(cluster)
    mine, other = make.a_node(cluster, pool=pool), make.a_node(cluster)
    make.a_source(cluster)
    pat = calling(make.a_user("pat", role="viewer", on=pool))

    assert pat.get(f"/api/v1/nodes/{mine.pk}/telemetry").status_code == 200
    assert pat.get(f"/api/v1/nodes/{mine.pk}/telemetry/history").status_code == 200
    assert pat.get(f"/api/v1/nodes/{other.pk}/telemetry").status_code == 404
    assert pat.get(f"/api/v1/nodes/{other.pk}/telemetry/history").status_code == 404
    assert pat.get("/api/v1/telemetry-sources").json()["results"] == []
    assert pat.get(place(cluster)).status_code == 404


def test_a_node_without_a_source_says_so_of_each_gpu(bob, cluster):
    node = make.a_node(cluster, gpus=2)

    said = bob.get(f"/api/v1/nodes/{node.pk}/telemetry").json()

    assert said["source"] is None
    assert [device["index"] for device in said["devices"]] == [0, 1]
    assert said["devices"][0]["metrics"]["xid"] == {
        "state": "no-source", "value": None, "unit": "", "sampled_at": None, "since": None,
    }  # fmt: skip


def test_a_history_without_a_prometheus_says_why_it_is_empty_and_where_to_add_one(bob, cluster):
    node = make.a_node(cluster)
    make.a_node_event(node, at=NOON - timedelta(minutes=5))

    said = bob.get(f"/api/v1/nodes/{node.pk}/telemetry/history?window=24h").json()

    assert (said["drawn_from"], said["plots"], said["step_s"]) == ("exporters", [], 60.0)
    assert said["trouble"] == (
        "The cluster has no Prometheus, and no exporter has answered yet. The first points appear within two "
        "minutes of the first answer."
    )
    assert said["add_source_href"] == f"/clusters/{cluster.pk}#cluster-telemetry"
    assert [mark["kind"] for mark in said["marks"]] == ["version"]
    assert len(said["times"]) == 24 * 60 + 1


@pytest.mark.parametrize("asked", ["-1", "1e9", "NaN", "soon", str(2**53 + 1)])
def test_a_history_is_refused_since_what_is_no_time(bob, cluster, asked):
    node = make.a_node(cluster)

    response = bob.get(f"/api/v1/nodes/{node.pk}/telemetry/history?since={asked}")

    assert response.status_code == 400
    assert [error["field"] for error in response.json()["errors"]] == ["since"]


def test_a_history_since_a_time_has_what_happened_since(bob, cluster):
    node = make.a_node(cluster)
    for minutes in (5, 20):
        make.a_node_event(node, at=NOON - timedelta(minutes=minutes))

    make.a_source(cluster, url=f"http://127.0.0.1:{a_closed_port()}")
    since = int((NOON - timedelta(minutes=10)).timestamp())
    said = bob.get(f"/api/v1/nodes/{node.pk}/telemetry/history?since={since}").json()

    assert (said["times"][0], len(said["times"])) == (since, 41)
    assert len(said["marks"]) == 1


WORDS = "The server redirects to https://sso.internal/login"


@pytest.mark.parametrize(
    "ours", ["The cluster's Prometheus returns no history.", "The web process cannot query the cluster's Prometheus."]
)
def test_what_a_source_said_is_told_to_who_sees_the_source(bob, cluster, ours, monkeypatch):
    """Its words name addresses, and where its secret is."""
    pool = make.a_pool(cluster)
    node = make.a_node(cluster, gpus=1, pool=pool)
    finding = make.a_finding(cluster, node=node, rule="gpu-hot", subject=f"GPU 0 of {node.name}")
    mine = calling(make.a_user("eve", role="viewer", on=pool))
    monkeypatch.setattr(history, "_answer", lambda *_, **__: history._Answer(why_none=ours, source_message=WORDS))
    of_node = f"/api/v1/nodes/{node.pk}"
    places = (
        f"{of_node}/telemetry/history",
        f"{of_node}/gpus/0/telemetry/history",
        f"/api/v1/findings/{finding.pk}/telemetry",
    )

    for place in places:
        assert bob.get(place).json()["trouble"] == f"{ours} {WORDS}", place
        assert (
            mine.get(place).json()["trouble"] == f"{ours} Only people with access to the whole cluster see the reason."
        ), place


@pytest.mark.parametrize("query", ["window=1y", "hours=3"])
def test_a_window_that_there_is_not_is_refused(bob, cluster, query):
    assert bob.get(f"/api/v1/nodes/{make.a_node(cluster).pk}/telemetry/history?{query}").status_code == 400
