"""One upsert statement for many rows: building the ORM's statements takes most of a first list's time.

50,000 pods took 28 s of CPU through `bulk_create`. SQLite and PostgreSQL share INSERT … ON CONFLICT.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import cache, lru_cache, partial
from operator import itemgetter
from types import MappingProxyType
from typing import Any

import msgspec
from django.db import connection, models

Adapter = Callable[[Any], Any]
ENCODER = msgspec.json.Encoder()


def upsert(
    model: type[models.Model],
    rows: Iterable[Mapping[str, Any]],
    *,
    unique: tuple[str, ...] = ("cluster", "uid"),
    only_new: Mapping[str, Any] = MappingProxyType({}),
) -> None:
    """Writes rows with equal columns; `only_new` are columns set only on insert.

    Without `unique` every row is inserted.
    """
    listed = list(rows)
    if listed:
        names = tuple(listed[0])
        upsert_lists(model, names, map(list, map(itemgetter(*names), listed)), unique=unique, only_new=only_new)


def upsert_lists(
    model: type[models.Model],
    names: tuple[str, ...],
    lists: Iterable[list[Any]],
    *,
    unique: tuple[str, ...] = ("cluster", "uid"),
    only_new: Mapping[str, Any] = MappingProxyType({}),
) -> None:
    """Writes rows that are lists of values in the order of the names. Modifies the lists."""
    adapters = _adapters(model, names)
    born_with = [_adapter(model, name)(value) for name, value in only_new.items()]
    values = list(lists)
    for given in values:
        for index, adapt in adapters:
            given[index] = adapt(given[index])
        given += born_with
    if values:
        with connection.cursor() as cursor:
            cursor.executemany(_statement(model, names, unique, tuple(only_new)), values)


def keys_of(model: type[models.Model], cluster_id: int, column: str, values: Iterable[str]) -> dict[str, int]:
    """Returns primary keys by value. The ORM takes longer to build `IN` than the query takes."""
    wanted = list(values)
    if not wanted:
        return {}
    table, quoted = connection.ops.quote_name(model._meta.db_table), connection.ops.quote_name(column)  # noqa: SLF001
    marks = ", ".join(["%s"] * len(wanted))
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {quoted}, id FROM {table} WHERE cluster_id = %s AND {quoted} IN ({marks})",  # noqa: S608
            [cluster_id, *wanted],
        )
        return dict(cursor.fetchall())


def update(model: type[models.Model], columns: tuple[str, ...], values: Iterable[tuple[Any, ...]]) -> None:
    """Updates columns of many rows, each with its own values followed by the primary key."""
    quote = connection.ops.quote_name
    changes = ", ".join(f"{quote(_field(model, name).column)} = %s" for name in columns)
    table = quote(model._meta.db_table)  # noqa: SLF001 - documented, in spite of its name
    with connection.cursor() as cursor:
        cursor.executemany(f"UPDATE {table} SET {changes} WHERE id = %s", list(values))  # noqa: S608


@cache
def _statement(
    model: type[models.Model],
    names: tuple[str, ...],
    unique: tuple[str, ...],
    only_new: tuple[str, ...],
) -> str:
    columns = {name: connection.ops.quote_name(_field(model, name).column) for name in names + only_new}
    kept = {*unique, *only_new}
    updates = ", ".join(f"{columns[name]} = EXCLUDED.{columns[name]}" for name in names if name not in kept)
    table = connection.ops.quote_name(model._meta.db_table)  # noqa: SLF001 - documented, in spite of its name
    insert = f"INSERT INTO {table} ({', '.join(columns.values())}) VALUES ({', '.join(['%s'] * len(columns))})"  # noqa: S608
    if not unique:
        return insert
    return f"{insert} ON CONFLICT ({', '.join(columns[name] for name in unique)}) DO UPDATE SET {updates}"


def _adapters(model: type[models.Model], names: tuple[str, ...]) -> list[tuple[int, Adapter]]:
    """Returns the adapters of columns whose values need conversion."""
    found = ((index, _adapter(model, name)) for index, name in enumerate(names))
    return [(index, adapt) for index, adapt in found if adapt is not _unchanged_value]


def _adapter(model: type[models.Model], name: str) -> Adapter:
    field = _field(model, name)
    if isinstance(field, models.JSONField):
        return _json_adapter()
    if isinstance(field, models.DateTimeField):
        return lru_cache(connection.ops.adapt_datetimefield_value)  # many pods have the same second
    return _unchanged_value


def _json_adapter() -> Adapter:
    """Returns a JSON adapter: on SQLite, plain text, since Django's adapter is slow."""
    adapt = connection.ops.adapt_json_value
    no_object, no_array = adapt({}, None), adapt([], None)
    written: Adapter = _json_text if connection.vendor == "sqlite" else partial(adapt, encoder=None)

    def adapted(value: Any) -> Any:
        if value:
            return written(value)
        return no_object if isinstance(value, dict) else no_array if isinstance(value, list) else written(value)

    return adapted


def _json_text(value: Any) -> str:
    return ENCODER.encode(value).decode()


def _unchanged_value(value: Any) -> Any:
    return value


def _field(model: type[models.Model], name: str) -> Any:
    return model._meta.get_field(name)  # noqa: SLF001 - documented, in spite of its name
