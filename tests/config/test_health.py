from threading import Event

import pytest
from django.db import DatabaseError, connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from django.utils import timezone

from config import health
from config.version import VERSION
from fleet.models import Observer
from fleet.models.observer import GRACE
from tests.make import a_cluster
from tests.notifications.make import a_channel

pytestmark = pytest.mark.sqlite


def test_a_process_is_alive_whatever_else_is_not(client, settings):
    settings.REDIS_URL = "redis://127.0.0.1:1/0"

    assert client.get("/healthz").json() == {"status": "alive", "version": VERSION}


@pytest.mark.django_db
def test_without_redis_it_is_not_ready_and_says_so_without_its_password(client, settings):
    settings.REDIS_URL = "redis://:swordfish@127.0.0.1:1/0"

    reply = client.get("/readyz")

    assert reply.status_code == 503
    assert reply.json()["database"] == "ok"
    assert reply.json()["redis"].startswith("Redis does not answer")
    assert "swordfish" not in reply.content.decode()


def test_without_a_database_it_is_not_ready(client, monkeypatch):
    def away():
        raise DatabaseError("no such host")

    monkeypatch.setattr(connection, "cursor", away)
    monkeypatch.setattr(health, "_migrated", Event())
    monkeypatch.setitem(health.NEEDED, "redis", lambda: "")

    reply = client.get("/readyz")

    assert reply.status_code == 503
    assert reply.json() == {
        "status": "not ready", "database": "The database does not answer (DatabaseError).", "redis": "ok",
        "migrations": "The database does not answer (DatabaseError).",
        "observing": "The database does not answer (DatabaseError).",
        "notifications": "The database does not answer (DatabaseError).",
    }  # fmt: skip


@pytest.mark.django_db
def test_with_both_it_is_ready(client, monkeypatch):
    monkeypatch.setitem(health.NEEDED, "redis", lambda: "")

    reply = client.get("/readyz")

    assert (reply.status_code, reply.json()["status"]) == (200, "ready")


@pytest.fixture
def unwatched(db, monkeypatch):
    monkeypatch.setitem(health.NEEDED, "redis", lambda: "")
    long_ago = timezone.now() - 2 * GRACE
    waits = {"next_look_at": timezone.now() + GRACE, "failures": 3}
    Observer.objects.create(cluster=a_cluster("dead", seen_at=None), lease_until=long_ago, **waits)
    Observer.objects.create(cluster=a_cluster("north", seen_at=None), lease_until=long_ago)


def test_a_cluster_that_nobody_watches_takes_no_web_process_out_of_service(client, unwatched):
    reply = client.get("/readyz")

    assert (reply.status_code, reply.json()["status"]) == (200, "ready")
    assert reply.json()["observing"].startswith("1 cluster is unwatched. No worker of the queue “observe” reports")


def test_who_asks_for_it_alone_is_told_that_it_is_not_ready_without_the_names_of_clusters(client, unwatched):
    reply = client.get("/readyz/observing")

    assert (reply.status_code, reply.json()["status"]) == (503, "not ready")
    assert "north" not in reply.content.decode()
    assert client.get("/readyz/database").json() == {"status": "ready", "database": "ok"}


def test_a_part_that_there_is_not_is_not_found(client):
    assert client.get("/readyz/everything").status_code == 404


@pytest.mark.django_db
def test_a_process_newer_than_its_database_is_not_ready_until_it_is_migrated(client, monkeypatch):
    monkeypatch.setitem(health.NEEDED, "redis", lambda: "")
    monkeypatch.setattr(health, "_migrated", Event())
    app, newest = MigrationLoader(connection).graph.leaf_nodes("fleet")[0]
    MigrationRecorder(connection).record_unapplied(app, newest)
    before = client.get("/readyz")
    MigrationRecorder(connection).record_applied(app, newest)

    assert (before.status_code, before.json()["database"]) == (503, "ok")
    said = "1 of this version's migrations is not applied: run `bin/manage migrate`."
    assert before.json()["migrations"] == said
    assert client.get("/readyz").status_code == 200


@pytest.mark.django_db
def test_a_channel_that_fails_is_reported_and_takes_no_traffic_away(client, monkeypatch):
    monkeypatch.setitem(health.NEEDED, "redis", lambda: "")
    a_channel("pager", heartbeat_sentence="It answers 401.")
    a_channel("off", state="failing", is_on=False)

    reply = client.get("/readyz")

    assert (reply.status_code, reply.json()["notifications"]) == (200, "1 notification channel fails.")
    assert client.get("/readyz/notifications").status_code == 503
