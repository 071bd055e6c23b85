"""Two processes that migrate at once take turns."""

import psycopg
import pytest
from django.core.management import call_command
from django.db import connection

from config.management.commands import migrate


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


def ask(session: "psycopg.Connection[tuple[bool]]", function: str) -> bool:
    return session.execute(f"SELECT {function}(%s)", [migrate.LOCK]).fetchone()[0]
