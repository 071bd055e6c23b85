"""An index that is created while the table is in use."""

from typing import Any

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db.migrations.operations import AddIndex


class AddIndexOnline(AddIndexConcurrently):
    """Creates an index concurrently on PostgreSQL, and as usual on SQLite. The migration has `atomic = False`."""

    def database_forwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        its = AddIndexConcurrently if schema_editor.connection.vendor == "postgresql" else AddIndex
        its.database_forwards(self, app_label, schema_editor, from_state, to_state)

    def database_backwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        its = AddIndexConcurrently if schema_editor.connection.vendor == "postgresql" else AddIndex
        its.database_backwards(self, app_label, schema_editor, from_state, to_state)
