"""The tests' databases have the tables that `manage.py migrate` makes."""

import os
import sqlite3
from contextlib import closing
from urllib.parse import urlsplit

import psycopg
import pytest
from django.db import connection

from tests.migrated import migrate

PLAIN = ("manage.py", "migrate", "--verbosity", "0")
POSTGRES = (
    """SELECT table_name, column_name, ordinal_position, column_default, is_nullable, udt_name,
    character_maximum_length, numeric_precision, numeric_scale, is_identity, collation_name, generation_expression
    FROM information_schema.columns WHERE table_schema = 'public'""",
    "SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid <> 0",
    """SELECT indexdef, indisvalid FROM pg_indexes JOIN pg_index ON indexrelid = quote_ident(indexname)::regclass
    WHERE schemaname = 'public'""",
    "SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE NOT tgisinternal",
    "SELECT pg_get_functiondef(oid) FROM pg_proc WHERE pronamespace = 'public'::regnamespace AND prokind = 'f'",
)
ROWS = (
    "SELECT app, name FROM django_migrations",
    "SELECT app_label, model FROM django_content_type",
    "SELECT codename, name FROM auth_permission",
)

pytestmark = [pytest.mark.nightly, pytest.mark.sqlite]


def test_the_quick_migration_makes_the_tables_of_migrate(tmp_path):
    plain, quick = (tables(tmp_path, name, *command) for name, command in (("plain", PLAIN), ("quick", ())))

    assert len(plain) > 1000
    assert quick == plain


def tables(folder, name: str, *command: str) -> list[str]:
    """Returns the definition of each table, column, index and trigger, and the rows that migrations make."""
    if connection.vendor == "sqlite":
        file = folder / f"{name}.sqlite3"
        migrate(f"sqlite:///{file}", *command)
        with closing(sqlite3.connect(file)) as made:
            return described(made, "SELECT name, sql FROM sqlite_master", *ROWS)
    url = os.environ["DATABASE_URL"]
    with psycopg.connect(url, autocommit=True) as server:
        server.execute(f"CREATE DATABASE {name}_migrate")  # type: ignore[call-overload]
        try:
            there = urlsplit(url)._replace(path=f"/{name}_migrate").geturl()
            migrate(there, *command)
            with psycopg.connect(there) as made:
                return described(made, *POSTGRES, *ROWS)
        finally:
            server.execute(f"DROP DATABASE {name}_migrate")  # type: ignore[call-overload]


def described(made, *queries: str) -> list[str]:
    return sorted(str(row) for query in queries for row in made.execute(query).fetchall())
