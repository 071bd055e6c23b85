"""Migrations without a transaction, which create an index while its table is in use, and can be run again."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db.migrations.operations import AddField, AddIndex


class AddIndexOnline(AddIndexConcurrently):
    """Creates an index concurrently on PostgreSQL, and as usual on SQLite. The migration has `atomic = False`."""

    def database_forwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        is_postgresql = schema_editor.connection.vendor == "postgresql"
        its = AddIndexConcurrently if is_postgresql else AddIndex
        # A migration that was cut off leaves an index that is invalid, or one that nobody recorded.
        name = schema_editor.quote_name(self.index.name)
        schema_editor.execute(f"DROP INDEX {'CONCURRENTLY ' if is_postgresql else ''}IF EXISTS {name}")
        its.database_forwards(self, app_label, schema_editor, from_state, to_state)

    def database_backwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        its = AddIndexConcurrently if schema_editor.connection.vendor == "postgresql" else AddIndex
        its.database_backwards(self, app_label, schema_editor, from_state, to_state)


@contextmanager
def columns_added_once() -> Iterator[None]:
    """Lets a migration without a transaction add no column that it added before it was cut off."""
    add = AddField.database_forwards

    def add_once(its: AddField, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        if schema_editor.atomic_migration or not _has_column(its, app_label, schema_editor.connection, to_state):
            add(its, app_label, schema_editor, from_state, to_state)

    AddField.database_forwards = add_once  # type: ignore[method-assign, assignment]
    try:
        yield
    finally:
        AddField.database_forwards = add  # type: ignore[method-assign]


def _has_column(its: AddField, app_label: str, connection: Any, to_state: Any) -> bool:
    its_model = to_state.apps.get_model(app_label, its.model_name)._meta  # noqa: SLF001 - Django's own public name
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT * FROM {connection.ops.quote_name(its_model.db_table)} WHERE 1 = 0")  # noqa: S608
        columns = {each[0] for each in cursor.description}
    return its_model.get_field(its.name).column in columns
