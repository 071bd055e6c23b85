import pytest
from django.db import DatabaseError, connection
from django.utils import timezone

from config import health
from fleet.models import Observer
from fleet.models.observer import GRACE
from tests.make import a_cluster


def test_a_process_is_alive_whatever_else_is_not(client, settings):
    settings.REDIS_URL = "redis://127.0.0.1:1/0"

    assert client.get("/healthz").json() == {"status": "alive"}


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
    monkeypatch.setitem(health.CHECKS, "redis", lambda: "")

    reply = client.get("/readyz")

    assert reply.status_code == 503
    assert reply.json() == {
        "status": "not ready", "database": "The database does not answer (DatabaseError).", "redis": "ok",
        "observers": "The database does not answer (DatabaseError).",
    }  # fmt: skip


@pytest.mark.django_db
def test_with_both_it_is_ready(client, monkeypatch):
    monkeypatch.setitem(health.CHECKS, "redis", lambda: "")

    reply = client.get("/readyz")

    assert (reply.status_code, reply.json()["status"]) == (200, "ready")


@pytest.mark.django_db
def test_a_cluster_that_nobody_watches_is_no_readiness(client, monkeypatch):
    monkeypatch.setitem(health.CHECKS, "redis", lambda: "")
    long_ago = timezone.now() - 2 * GRACE
    waits = {"next_look_at": timezone.now() + GRACE, "failures": 3}
    Observer.objects.create(cluster=a_cluster("dead", seen_at=None), lease_until=long_ago, **waits)
    assert client.get("/readyz").status_code == 200

    Observer.objects.create(cluster=a_cluster("north", seen_at=None), lease_until=long_ago)
    reply = client.get("/readyz")

    assert reply.status_code == 503
    assert "No worker watches north: the queue" in reply.json()["observers"]
