import pytest
from django.db import DatabaseError, connection

from config import health


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
    }  # fmt: skip


@pytest.mark.django_db
def test_with_both_it_is_ready(client, monkeypatch):
    monkeypatch.setitem(health.CHECKS, "redis", lambda: "")

    reply = client.get("/readyz")

    assert (reply.status_code, reply.json()["status"]) == (200, "ready")
