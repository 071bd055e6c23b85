"""What a machine may lack is skipped with the reason, but under CI=true a failure."""

import gc
import os
import shutil
import threading
from collections.abc import Generator, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from celery import current_app
from django.core.management.commands import flush
from django.db import connection
from django.db.backends.postgresql.operations import DatabaseOperations
from django.test import Client

from capacity.compared_nodes import forget_indexes
from config.garbage import freeze_collector
from fleet.messages import wake
from health.gpus import roster_cache
from health.sources import history, snapshots
from health.stack.pods import forget_kept
from health.telemetry.prometheus import client
from tests import (
    make,
    profiles,  # a test file's settings are made from the profile that is loaded
)
from tests.api_server import ApiServer, an_api_server
from tests.migrated import migrated_template, put_migrated
from tests.patience import PATIENCE_S, get_through
from tests.processes import GroupScheduling

PROGRAMS = {
    "needs_kubectl": ("kubectl",),
    "prometheus": ("prometheus",),
    "alertmanager": ("prometheus-alertmanager", "alertmanager"),
    "npm": ("npm",),
    "helm": ("helm",),
    "browser": ("chromium", "chromium-browser", "google-chrome"),
}
# Fixtures that start an API server: what asks for one is no unit test.
SERVERS = {"api", "ground", "guarded", "sick", "_observed"}


@pytest.fixture(scope="session")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """An empty cluster, one for the whole run: leave nothing behind."""
    with an_api_server(tmp_path_factory.mktemp("api")) as server:
        yield server


@pytest.fixture(autouse=True)
def _rows_by_hand(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Counts the rows that a test writes by hand before its next request, as their writers would have.

    Assertions on the number of queries do not see this. Other connections write only in tests with real commits,
    so those tests count before every request.
    """
    marker = request.node.get_closest_marker("django_db")
    has_commits = "transactional_db" in request.fixturenames or bool(marker and marker.kwargs.get("transaction"))
    if not (has_commits or marker or "db" in request.fixturenames):
        yield
        return
    roster_cache.forget()  # keys of rows that a test before this one rolled back
    forget_indexes()
    forget_kept()
    ask = Client.request
    is_counted = False

    def watch(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        nonlocal is_counted
        if changes_fleet(sql):
            is_counted = False
            forget_indexes()
            forget_kept()
        return execute(sql, params, many, context)

    def counted_first(client: Client, **asked: Any) -> Any:
        nonlocal is_counted
        was, connection.force_debug_cursor = connection.force_debug_cursor, False
        if has_commits or not is_counted:
            make.counted()
            is_counted = True
        connection.force_debug_cursor = was
        return ask(client, **asked)

    monkeypatch.setattr(Client, "request", counted_first)
    with connection.execute_wrapper(watch):
        yield


def changes_fleet(sql: Any) -> bool:
    """Returns whether a statement changes rows that the counters read: tables of `fleet`, or a rollback."""
    text = str(sql).lstrip()
    return text.startswith("ROLLBACK") or ("fleet_" in text and not text.startswith("SELECT"))


@pytest.fixture(autouse=True, scope="session")
def _patient() -> Iterator[None]:
    """A server of a test is waited for as long as tests wait: that a machine is busy is no fault of a source."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("CONNECT_S", "READ_S", "ANSWER_S"):
            patch.setattr(client, name, PATIENCE_S)
        patch.setattr(
            history,
            "BOUNDS",
            replace(history.BOUNDS, connect_s=PATIENCE_S, read_s=PATIENCE_S, answer_s=PATIENCE_S),
        )
        patch.setattr(snapshots, "TIMEOUT_S", PATIENCE_S)
        yield


@pytest.fixture(scope="session")
def django_db_modify_db_settings(
    django_db_modify_db_settings_parallel_suffix: None,  # the fixture that this one replaces
) -> None:
    """The processes of a run copy one migrated database."""
    if connection.vendor == "sqlite":
        put_migrated(Path(connection.settings_dict["TEST"]["NAME"]))
    elif "PYTEST_XDIST_WORKER" in os.environ:
        connection.settings_dict["TEST"]["TEMPLATE"] = migrated_template(os.environ["DATABASE_URL"])


@pytest.fixture(scope="session")
def django_db_keepdb(django_db_keepdb: bool) -> bool:
    """The copy on SQLite is used as it is. It is in a temporary folder, which ends with the process."""
    return django_db_keepdb or connection.vendor == "sqlite"


@pytest.fixture(autouse=True, scope="session")
def _quick_flush() -> Iterator[None]:
    """After a test with real commits, only tables with rows are emptied: TRUNCATE makes each of 150 tables and their
    indexes anew. Permissions, which nothing here reads, are not made again either."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DatabaseOperations, "sql_flush", delete_all_rows)
        patch.setattr(flush, "emit_post_migrate_signal", lambda *_: None)
        yield


TRUNCATE = DatabaseOperations.sql_flush


def delete_all_rows(operations: DatabaseOperations, style: Any, tables: Iterable[str], **asked: bool) -> list[str]:
    """Returns what empties these tables on PostgreSQL. Triggers of keys and guards do not run in the role `replica`."""
    if asked.get("reset_sequences"):
        return TRUNCATE(operations, style, tables, **asked)
    deletes = "; ".join(f"DELETE FROM {operations.quote_name(table)}" for table in sorted(tables))  # noqa: S608 - ours
    return [f"SET LOCAL session_replication_role = replica; {deletes}"]


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, dict]]:
    """What is sent to the broker from now on: nothing that a test before this one has handed over or timed."""
    timers = [thread for thread in threading.enumerate() if isinstance(thread, threading.Timer)]
    for timer in timers:
        if timer.function.__module__ == wake.__name__:
            timer.cancel()
            timer.join(PATIENCE_S)
    get_through(wake._nudges)
    tasks: list[tuple[str, dict]] = []
    monkeypatch.setattr(current_app, "send_task", lambda name, **given: tasks.append((name, given)))
    return tasks


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is found stays to the end: to look through it for cycles meanwhile took a fifth of the time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if profiles.SHARE != 1:
        profiles.multiply_examples(items, profiles.SHARE)
    for item in items:
        if SERVERS.intersection(getattr(item, "fixturenames", ())):
            item.add_marker("rounds")


def pytest_collection_finish() -> None:
    """As in a worker and in the web process; what pytest holds of 11,000 tests, it would look through all the time.

    It is kept as it is: to look through it even once takes half a second or more in each process.
    """
    # A pool of connections that an import opened would stay with the real database, where tests leave their rows.
    if getattr(connection, "_connection_pools", None):
        raise pytest.UsageError("Importing the tests opened a connection to the database.")
    gc.freeze()
    freeze_collector()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> GroupScheduling | None:
    return GroupScheduling(config, log) if config.getoption("dist") == "loadfile" else None


def pytest_runtest_setup(item: pytest.Item) -> None:
    for marker, names in PROGRAMS.items():
        if item.get_closest_marker(marker) and not any(shutil.which(name) for name in names):
            lacking(f"needs {names[0]} on the PATH")


def lacking(reason: str) -> None:
    """Skip, or fail where everything must be there."""
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)
