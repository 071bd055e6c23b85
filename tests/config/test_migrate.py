"""Two processes that migrate at once take turns."""

from threading import Event

import psycopg
import pytest
from django.core.management import call_command
from django.db import DatabaseError, connection, connections, migrations, models
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.recorder import MigrationRecorder

from config import health
from config.management.commands import migrate, wait_for_migrations
from edges.online_index import AddIndexOnline, columns_added_once


@pytest.mark.django_db
@pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite has one writer, and no advisory locks")
def test_a_migration_waits_for_another_one_to_end(monkeypatch):
    given = connection.settings_dict
    address = {name: given[name.upper()] for name in ("host", "port", "user", "password") if given[name.upper()]}
    waited = []
    with psycopg.connect(dbname=given["NAME"], autocommit=True, **address) as other:
        assert ask(other, "pg_try_advisory_lock")
        monkeypatch.setattr(migrate.time, "sleep", lambda s: (waited.append(s), ask(other, "pg_advisory_unlock")))

        call_command("migrate", "quarterdeck", verbosity=0)

        assert waited == [migrate.POLL_S]
        assert ask(other, "pg_try_advisory_lock"), "the lock is still held after the migration"


@pytest.mark.django_db
def test_a_pod_waits_for_all_migrations_and_names_what_is_missing(monkeypatch, capsys):
    monkeypatch.setattr(health, "_migrated", Event())
    (newest,) = MigrationExecutor(connection).loader.graph.leaf_nodes("fleet")
    MigrationRecorder(connection).record_unapplied(*newest)
    applied = []

    def apply(_seconds: float) -> None:
        MigrationRecorder(connection).record_applied(*newest)
        applied.append(True)

    monkeypatch.setattr(wait_for_migrations.time, "sleep", apply)

    call_command("wait_for_migrations")

    assert applied == [True]
    assert "1 of this version's migrations is not applied" in capsys.readouterr().err


@pytest.mark.django_db
@pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite has no server that restarts")
def test_a_pod_that_waits_connects_again_when_postgresql_restarted(monkeypatch, capsys):
    monkeypatch.setattr(health, "_migrated", Event())
    turns = iter([None])  # a second turn without an answer ends the test
    monkeypatch.setattr(wait_for_migrations.time, "sleep", lambda _: next(turns))
    of_test, alone = connections["default"], connection.copy()
    with alone.cursor() as cursor, of_test.cursor() as other:
        cursor.execute("SELECT pg_backend_pid()")
        other.execute("SELECT pg_terminate_backend(%s, 5000)", cursor.fetchone())
    connections["default"] = alone
    try:
        call_command("wait_for_migrations")
    finally:
        connections["default"] = of_test
        alone.close()

    assert capsys.readouterr().err.count("Waiting") == 1


def ask(session: "psycopg.Connection[tuple[bool]]", function: str) -> bool:
    return session.execute(f"SELECT {function}(%s)", [migrate.LOCK]).fetchone()[0]


class Cut(migrations.Migration):
    """A migration without a transaction, as fleet 0011 and 0012 are."""

    atomic = False
    operations = (
        migrations.AddField("pod", "tried", models.JSONField(null=True)),
        AddIndexOnline("pod", models.Index(fields=["cluster", "tried"], name="pods_tried")),
    )


@pytest.mark.nightly
@pytest.mark.sqlite
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("left_over", [False, True], ids=["before the index", "before its record"])
def test_a_migration_that_was_cut_off_is_run_again(left_over, monkeypatch):
    executor, cut = MigrationExecutor(connection), Cut("9999_cut", "fleet")
    state = executor.loader.project_state()
    create = AddIndexOnline.database_forwards

    def cut_off(its, *args):
        if left_over:
            create(its, *args)
        raise InterruptedError

    with monkeypatch.context() as patch:
        patch.setattr(AddIndexOnline, "database_forwards", cut_off)
        with pytest.raises(InterruptedError), columns_added_once():
            executor.apply_migration(state.clone(), cut)
    assert ("fleet", "9999_cut") not in executor.recorder.applied_migrations()
    with pytest.raises(DatabaseError):  # Django alone adds the column again
        executor.apply_migration(state.clone(), cut)

    with columns_added_once():
        executor.apply_migration(state.clone(), cut)

    try:
        with connection.cursor() as cursor, pytest.raises(DatabaseError, match="already exists"):
            cursor.execute("CREATE INDEX pods_tried ON fleet_pod (cluster_id)")
        assert ("fleet", "9999_cut") in executor.recorder.applied_migrations()
    finally:
        executor.unapply_migration(state.clone(), cut)
