"""Inserts of many rows, compiled before the transaction that runs them: Django compiles for longer than a database
writes (Z40)."""

from collections.abc import Sequence
from typing import Any

from django.db import connection, models
from django.db.models.sql import InsertQuery

Statement = tuple[str, Sequence[Any]]


def compile_inserts(rows: Sequence[models.Model]) -> list[Statement]:
    """Returns the statements that insert these unsaved rows of one model."""
    found = list[Statement]()
    if not rows:
        return found
    fields = [field for field in rows[0]._meta.concrete_fields if not field.primary_key]  # noqa: SLF001 - documented
    size = max(1, connection.ops.bulk_batch_size(fields, rows))
    for start in range(0, len(rows), size):
        query = InsertQuery(type(rows[0]))
        query.insert_values(fields, list(rows[start : start + size]))
        found += query.get_compiler(connection=connection).as_sql()
    return found


def run_inserts(statements: Sequence[Statement]) -> None:
    """Runs the statements. Call it in a transaction."""
    with connection.cursor() as cursor:
        for statement, params in statements:
            cursor.execute(statement, params)
