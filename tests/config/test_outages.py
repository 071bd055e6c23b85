"""A database that is away, full, read-only or locked is no bug of ours: 503, what it is, and when to try again."""

import asyncio
import sqlite3
from datetime import timedelta

import psycopg
import pytest
from django.db import OperationalError, ProgrammingError, connection, connections
from psycopg_pool import PoolTimeout
from rest_framework.test import APIClient

from config import health, outages
from config.outages import CloseOnOutage, outage_of
from edges.locks import sqlite_waits
from fleet.models import NodeNote
from tests import make
from tests.callers import calling
from tests.make import a_cluster, a_node, a_plan, a_user
from tests.pages import Page, visiting
from tests.rollouts.rows import in_state

pytestmark = pytest.mark.sqlite

SHORT = timedelta(milliseconds=50)


def of_driver(error: Exception) -> OperationalError:
    """As Django raises it."""
    wrapped = OperationalError(str(error))
    wrapped.__cause__ = error
    return wrapped


@pytest.mark.parametrize(
    ("state", "slug"),
    [
        ("55P03", "locked"),
        ("40P01", "locked"),
        ("57014", "slow"),
        ("25P03", "slow"),
        ("25006", "read-only"),
        ("53100", "full"),
        ("53300", "busy"),
        ("57P01", "starting"),
        ("57P02", "starting"),
        ("57P03", "starting"),
        ("58030", "broken"),
        ("28P01", "sign-in"),
        ("08006", "away"),
    ],
)
def test_postgresql_says_what_it_is_by_its_sqlstate(state, slug):
    found = outage_of(of_driver(psycopg.errors.lookup(state)("x")))

    assert found is not None
    assert found.slug == f"database-{slug}"


@pytest.mark.parametrize(
    ("error", "slug"),
    [
        (psycopg.OperationalError("connection failed: FATAL:  the database system is in recovery mode"), "starting"),
        (psycopg.OperationalError("connection failed: FATAL:  the database system is starting up"), "starting"),
        (psycopg.OperationalError("connection failed: FATAL:  sorry, too many clients already"), "busy"),
        (psycopg.OperationalError("connection failed: Connection refused"), "away"),
        (psycopg.OperationalError("server closed the connection unexpectedly"), "away"),
        (PoolTimeout("couldn't get a connection after 10.00 sec"), "busy"),
        (sqlite3.OperationalError("database is locked"), "locked"),
        (sqlite3.OperationalError("database or disk is full"), "full"),
        (sqlite3.OperationalError("attempt to write a readonly database"), "read-only"),
        (sqlite3.OperationalError("disk I/O error"), "broken"),
        (sqlite3.OperationalError("unable to open database file"), "away"),
    ],
)
def test_without_a_sqlstate_it_is_told_by_its_message(error, slug):
    assert outage_of(of_driver(error)).slug == f"database-{slug}"


@pytest.mark.parametrize(
    "error",
    [
        OperationalError("no such table: rollouts_plan"),
        ProgrammingError("column does not exist"),
        ValueError("database is locked"),
        of_driver(psycopg.errors.lookup("42P01")("relation does not exist")),
        None,
    ],
)
def test_a_statement_of_ours_that_is_wrong_is_a_bug(error):
    assert outage_of(error) is None


def test_only_what_stops_every_worker_is_said_to_stop_releases():
    assert "No node is released" in outage_of(of_driver(psycopg.errors.lookup("53100")("x"))).detail
    assert "No node is released" not in outage_of(of_driver(psycopg.errors.lookup("55P03")("x"))).detail


async def end_of_socket(error: Exception, *, accepts: bool) -> list[dict]:
    sent: list[dict] = []

    async def app(scope, receive, send) -> None:
        if accepts:
            await send({"type": "websocket.accept"})
        raise error

    async def send(message: dict) -> None:
        sent.append(message)

    await CloseOnOutage(app)({"type": "websocket"}, None, send)
    return sent


@pytest.mark.parametrize("accepts", [True, False])
def test_a_websocket_is_closed_with_a_code_on_which_its_page_comes_again(accepts):
    accepted, closed = asyncio.run(end_of_socket(OperationalError("database is locked"), accepts=accepts))

    assert accepted == {"type": "websocket.accept"}
    assert (closed["code"], closed["reason"]) == (1012, "The database is locked")


def test_a_bug_of_a_websocket_stays_one():
    with pytest.raises(ValueError, match="ours"):
        asyncio.run(end_of_socket(ValueError("ours"), accepts=True))


@pytest.fixture
def writer():
    """Another connection, with a transaction that has written: on SQLite nobody else may."""
    other = connections.create_connection("default")
    other.set_autocommit(False)
    with other.cursor() as cursor:
        cursor.execute("UPDATE people_user SET first_name = ''")
    yield other
    other.rollback()
    other.close()


@pytest.mark.django_db(transaction=True)
@pytest.mark.skipif(connection.vendor != "sqlite", reason="on PostgreSQL nobody waits for another table's writer")
def test_sqlite_that_another_connection_has_locked_is_503_on_pages_in_rest_and_for_a_load_balancer(
    request, monkeypatch
):
    plan, ada = a_plan(), a_user("ada", role="admin")
    in_state(plan, "promoting")
    page, rest = visiting(ada), calling(ada)
    page.raise_request_exception = rest.raise_request_exception = False
    monkeypatch.setattr(
        make, "counted", lambda: None
    )  # a test counts rows before a request, and would wait for the lock
    request.getfixturevalue("writer")
    monkeypatch.setattr(health, "_probe", health._Probe())
    monkeypatch.setitem(health.NEEDED, "redis", lambda: "")

    with sqlite_waits(SHORT):
        shown = page.post(f"/plans/{plan.pk}/commands/halt", {"reason": "Smoke."})
        said = rest.post(f"/api/v1/plans/{plan.pk}/halts", {"reason": "Smoke."}, format="json")
    ready = APIClient().get("/readyz")

    assert (shown.status_code, shown["Retry-After"]) == (503, "2")
    assert "The database is locked" in Page(shown.content.decode()).text
    assert "bug" not in shown.content.decode()
    assert (said.status_code, said["Retry-After"]) == (503, "2")
    assert said.json()["type"] == "urn:quarterdeck:problem:database-locked"
    assert ready.status_code == 503
    assert ready.json()["database"].startswith("Another transaction holds")


@pytest.mark.django_db(transaction=True)
@pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite has no transactions that only read")
def test_a_postgresql_that_only_reads_is_503_and_not_ready(monkeypatch):
    ada = a_user("ada", role="admin")
    rest = calling(ada)
    rest.raise_request_exception = False
    monkeypatch.setattr(health, "_probe", health._Probe())
    monkeypatch.setitem(health.NEEDED, "redis", lambda: "")
    with connection.cursor() as cursor:
        cursor.execute("SET default_transaction_read_only = on")
    try:
        said = rest.post("/api/v1/stop", {"reason": "Smoke.", "confirm": True}, format="json")
        ready = APIClient().get("/readyz")
    finally:
        with connection.cursor() as cursor:
            cursor.execute("SET default_transaction_read_only = off")

    assert (said.status_code, said["Retry-After"]) == (503, "10")
    assert "No node is released until the database is back." in said.json()["detail"]
    assert ready.status_code == 503
    assert ready.json()["database"].startswith("The database accepts no writes")


@pytest.mark.django_db
def test_a_web_process_whose_write_a_full_disk_refused_is_not_ready_although_a_small_write_succeeds(monkeypatch):
    """PostgreSQL with a full disk: a row fits into a page, but no table can grow."""
    node, rest = a_node(a_cluster()), calling(a_user("ada", role="admin"))
    clock = Clock()
    monkeypatch.setattr(outages, "time", clock)
    monkeypatch.setattr(health, "_probe", health._Probe())
    monkeypatch.setitem(health.NEEDED, "redis", lambda: "")

    with monkeypatch.context() as full:
        full.setattr(NodeNote, "save", refuse)
        said = rest.post(f"/api/v1/nodes/{node.pk}/notes", {"text": "Smoke."}, format="json")
    ready = APIClient().get("/readyz")
    clock.now += outages.FULL.retry_after_s
    later = APIClient().get("/readyz")

    assert (said.status_code, said["Retry-After"]) == (503, "30")
    assert said.json()["detail"].startswith("The disk of the database is full. Free some space.")
    assert (ready.status_code, ready.json()["database"]) == (503, outages.FULL.detail)
    assert (later.status_code, later.json()["database"]) == (200, "ok")


@pytest.mark.django_db
@pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite has no pool of connections")
@pytest.mark.parametrize(("port", "slug"), [(None, "busy"), ("1", "away")])
def test_a_pool_without_a_connection_is_busy_only_if_the_database_accepts_one(monkeypatch, port, slug):
    """While PostgreSQL is away, the pool waits for a connection as it does while all are in use."""
    monkeypatch.setitem(connection.settings_dict, "PORT", port or connection.settings_dict["PORT"])

    found = outage_of(of_driver(PoolTimeout("couldn't get a connection after 10.00 sec")))

    assert found.slug == f"database-{slug}"


class Clock:
    now = 1000.0

    def monotonic(self) -> float:
        return self.now


def refuse(*given, **named) -> None:
    raise of_driver(psycopg.errors.DiskFull("could not extend file"))
