"""Where a walk led, kept for the next test of this process that would go the same way from the same beginning.

Its rows and the objects of its cluster are put back as they were. What a walk asked the API server is in no log then,
and what it would have called is not called: a test that is about the walk itself goes it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.apps import apps
from django.db import connection
from django.db.models import Model

from simulator.store import Store

APPS = ("people", "fleet", "health", "rollouts")
Rows = dict[str, list[tuple[Any, ...]]]  # by table
Objects = list[tuple[tuple[str, str, str], dict[str, Any]]]  # each with its group, version and plural


@dataclass(frozen=True)
class Kept:
    rows: Rows
    objects: Objects
    version: int
    at: datetime


def tables() -> Iterator[type[Model]]:
    for app in APPS:
        yield from apps.get_app_config(app).get_models(include_auto_created=True)


def rows() -> Rows:
    """All of our tables, as the database has them; a table without any is left out."""
    found: Rows = {}
    with connection.cursor() as cursor:
        for model in tables():
            cursor.execute(f"SELECT {_columns(model)} FROM {_name(model)} ORDER BY 1")  # noqa: S608 (names of models)
            if of_table := cursor.fetchall():
                found[model._meta.db_table] = of_table
    return found


def put_rows(kept: Rows, *, instead_of: Rows) -> None:
    """Hold exactly these, where those are."""
    with connection.cursor() as cursor:
        for model in tables():
            table = model._meta.db_table
            if table in instead_of:
                cursor.execute(f"DELETE FROM {_name(model)}")  # noqa: S608
            if of_table := kept.get(table):
                places = ", ".join(["%s"] * len(of_table[0]))
                write = f"INSERT INTO {_name(model)} ({_columns(model)}) VALUES ({places})"  # noqa: S608
                cursor.executemany(write, of_table)


def objects(store: Store) -> Objects:
    """No copy: what is stored nobody changes."""
    with store.lock:
        kinds = {kind.shelf: kind for kind in store.kinds.values()}.values()
        return [
            ((kind.group, kind.version, kind.plural), record.obj)
            for kind in kinds
            for record in store.shelf(kind).records.values()
        ]


def _name(model: type[Model]) -> str:
    return connection.ops.quote_name(model._meta.db_table)


def _columns(model: type[Model]) -> str:
    return ", ".join(
        connection.ops.quote_name(column.column) for column in model._meta.local_concrete_fields if not column.generated
    )
