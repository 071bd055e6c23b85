"""Rows that a builder wrote once in this process, and every later test gets by one statement."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from django.conf import UserSettingsHolder, settings
from django.db import connection
from django.db.models import Model

from tests.own_apps import own_apps

Rows = dict[str, list[tuple[Any, ...]]]  # by table
Built = TypeVar("Built", bound=Model)
_saved: dict[str, "Saved"] = {}
_inserts: dict[int, tuple[Rows, str]] = {}  # by their identity; and the statement that inserts them
_statements = WeakKeyDictionary[Any, set[str]]()  # names of what a connection to PostgreSQL has planned


@dataclass(frozen=True)
class Saved:
    """What a builder wrote: the rows that it found, what it built, and the statement that inserts all of its rows."""

    found: Rows
    model: type[Model]
    key: Any
    insert: str


@cache
def tables() -> tuple[type[Model], ...]:
    return tuple(model for app in own_apps() for model in app.get_models(include_auto_created=True))


def rows() -> Rows:
    """All of our tables, as the database has them; a table without any is left out."""
    found: Rows = {}
    with connection.cursor() as cursor:
        cursor.execute(_planned(cursor, "filled_tables", _filled_tables()))
        names = {name for (name,) in cursor.fetchall()}
        for model in tables():
            if (table := model._meta.db_table) in names:
                cursor.execute(
                    _planned(cursor, f"rows_of_{table}", f"SELECT {_columns(model)} FROM {_name(model)} ORDER BY 1")  # noqa: S608
                )
                found[table] = cursor.fetchall()
    return found


@cache
def _filled_tables() -> str:
    return " UNION ALL ".join(
        f"SELECT '{model._meta.db_table}' WHERE EXISTS (SELECT 1 FROM {_name(model)})"  # noqa: S608
        for model in tables()
    )


def _planned(cursor: Any, name: str, select: str) -> str:
    """Returns what gives the rows of `select`. PostgreSQL plans it once for each connection: that takes longest."""
    if connection.vendor != "postgresql":
        return select
    planned = _statements.setdefault(connection.connection, set())
    if name not in planned:
        cursor.execute(f"PREPARE {name} AS {select}")
        planned.add(name)
    return f"EXECUTE {name}"


def put_rows(kept: Rows, *, instead_of: Rows) -> None:
    """Hold exactly these, where those are."""
    with connection.cursor() as cursor:
        for model in tables():
            if model._meta.db_table in instead_of:
                cursor.execute(f"DELETE FROM {_name(model)}")  # noqa: S608
        if connection.vendor != "postgresql":
            for model in tables():
                if of_table := kept.get(model._meta.db_table):
                    cursor.executemany(_insert(model, of_table[:1]), of_table)
        elif kept:
            if id(kept) not in _inserts:
                _inserts[id(kept)] = kept, _inserted(kept)
            cursor.execute(_inserts[id(kept)][1])


def build_once(name: str, model: type[Built], build: Callable[[], Built], *, on: Sequence[Model] = ()) -> Built:
    """Returns what `build` builds; the second call in a process inserts the rows of the first one.

    `on`: what it builds is about these rows. It builds anew unless they are saved rows too and all tables are the same.

    PostgreSQL does not take back a sequence in a rollback, so no other row has the keys of saved rows. SQLite does,
    and there every call builds. So does a test that commits, or has settings of its own. A test that patches the code
    of the builder calls the builder itself.
    """
    if connection.vendor != "postgresql" or not connection.in_atomic_block:
        return build()
    if isinstance(settings._wrapped, UserSettingsHolder):
        return build()
    if not {(type(row), row.pk) for row in on} <= {(saved.model, saved.key) for saved in _saved.values()}:
        return build()
    saved = _saved.get(name := f"{name} {[row.pk for row in on]}")
    found = {} if saved and not on else rows()
    if saved and (saved.found == found or not on):
        with connection.cursor() as cursor:
            cursor.execute(saved.insert)
        return model._default_manager.get(pk=saved.key)
    built = build()
    if not saved and (insert := _added(found, rows())):
        _saved[name] = Saved(found, model, built.pk, insert)
    return built


def _added(before: Rows, after: Rows) -> str:
    """One statement that inserts the new rows; blank if the builder changed a row that it found."""
    if any(row not in after.get(table, []) for table, was in before.items() for row in was):
        return ""
    return _inserted({table: [row for row in now if row not in before.get(table, [])] for table, now in after.items()})


def _inserted(new: Rows) -> str:
    """One statement of PostgreSQL that inserts these rows."""
    with connection.cursor() as cursor:
        return ";\n".join(
            cursor.mogrify(_insert(model, of_table), [value for row in of_table for value in row])
            for model in tables()
            if (of_table := new.get(model._meta.db_table))
        )


def _insert(model: type[Model], of_table: list[tuple[Any, ...]]) -> str:
    row = f"({', '.join(['%s'] * len(of_table[0]))})"
    return f"INSERT INTO {_name(model)} ({_columns(model)}) VALUES {', '.join([row] * len(of_table))}"  # noqa: S608


def _name(model: type[Model]) -> str:
    return connection.ops.quote_name(model._meta.db_table)


@cache
def _columns(model: type[Model]) -> str:
    return ", ".join(
        connection.ops.quote_name(column.column) for column in model._meta.local_concrete_fields if not column.generated
    )
