"""Rows that a builder wrote once in this process, and every later test gets by one statement."""

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from django.db import connection
from django.db.models import Model

from tests.own_apps import own_apps

Rows = dict[str, list[tuple[Any, ...]]]  # by table
Built = TypeVar("Built", bound=Model)
_saved: dict[str, tuple[Any, str]] = {}  # the key of the built row, and the statement that inserts all of them


def tables() -> Iterator[type[Model]]:
    for app in own_apps():
        yield from app.get_models(include_auto_created=True)


def rows() -> Rows:
    """All of our tables, as the database has them; a table without any is left out."""
    found: Rows = {}
    with connection.cursor() as cursor:
        filled = (f"SELECT '{it._meta.db_table}' WHERE EXISTS (SELECT 1 FROM {_name(it)})" for it in tables())  # noqa: S608
        cursor.execute(" UNION ALL ".join(filled))
        names = {name for (name,) in cursor.fetchall()}
        for model in tables():
            if model._meta.db_table in names:
                cursor.execute(f"SELECT {_columns(model)} FROM {_name(model)} ORDER BY 1")  # noqa: S608
                found[model._meta.db_table] = cursor.fetchall()
    return found


def put_rows(kept: Rows, *, instead_of: Rows) -> None:
    """Hold exactly these, where those are."""
    with connection.cursor() as cursor:
        for model in tables():
            table = model._meta.db_table
            if table in instead_of:
                cursor.execute(f"DELETE FROM {_name(model)}")  # noqa: S608
            if of_table := kept.get(table):
                cursor.executemany(_insert(model, len(of_table[0])), of_table)


def build_once(name: str, model: type[Built], build: Callable[[], Built]) -> Built:
    """Returns what `build` builds; the second call in a process inserts the rows of the first one.

    PostgreSQL does not take back a sequence in a rollback, so no other row has the keys of saved rows. SQLite does,
    and there every call builds. So does a test that commits.
    """
    if connection.vendor != "postgresql" or not connection.in_atomic_block:
        return build()
    if name not in _saved:
        before = rows()
        built = build()
        if insert := _added(before, rows()):
            _saved[name] = (built.pk, insert)
        return built
    key, insert = _saved[name]
    with connection.cursor() as cursor:
        cursor.execute(insert)
    return model._default_manager.get(pk=key)


def _added(before: Rows, after: Rows) -> str:
    """One statement that inserts the new rows; blank if the builder changed a row that it found."""
    statements = []
    with connection.cursor() as cursor:
        for model in tables():
            was, now = before.get(model._meta.db_table, []), after.get(model._meta.db_table, [])
            if any(row not in now for row in was):
                return ""
            statements += [cursor.mogrify(_insert(model, len(row)), row) for row in now if row not in was]
    return ";\n".join(statements)


def _insert(model: type[Model], width: int) -> str:
    places = ", ".join(["%s"] * width)
    return f"INSERT INTO {_name(model)} ({_columns(model)}) VALUES ({places})"  # noqa: S608


def _name(model: type[Model]) -> str:
    return connection.ops.quote_name(model._meta.db_table)


def _columns(model: type[Model]) -> str:
    return ", ".join(
        connection.ops.quote_name(column.column) for column in model._meta.local_concrete_fields if not column.generated
    )
