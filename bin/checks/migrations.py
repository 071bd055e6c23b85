#!/usr/bin/env python3
"""Fail on a migration that breaks the version before it: during an upgrade, old and new code use one database.

Expand, deploy, contract: a release adds, and a later one removes what no code uses any more. A migration that must do
otherwise carries its reason, by operation: `exemptions = {"RemoveField": "No code has read it since 1.2."}`.
"""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings.test")

import django  # noqa: E402

django.setup()

from django.contrib.postgres.operations import AddConstraintNotValid, AddIndexConcurrently  # noqa: E402
from django.db import models  # noqa: E402
from django.db.migrations import Migration, operations  # noqa: E402
from django.db.migrations.loader import MigrationLoader  # noqa: E402
from django.db.migrations.operations.base import Operation  # noqa: E402
from django.db.migrations.state import ProjectState  # noqa: E402

# The last migration of each app that was written before any version was released: no older code runs beside it.
UNRELEASED = {
    "capacity": 2, "fleet": 7, "health": 6, "maintenance": 6, "notifications": 5, "operations": 3,
    "people": 5, "rollouts": 6,
}  # fmt: skip
REMOVED = (operations.RemoveField, operations.DeleteModel)
RENAMED = (operations.RenameField, operations.RenameModel, operations.AlterModelTable)
CONSTRAINTS = (operations.AddConstraint, operations.AlterUniqueTogether)
SHORTEST_REASON = 20  # characters


def problems(migration: Migration, before: ProjectState) -> Iterator[str]:
    """Yields operations that the previous version cannot run with, unless exempted, and useless exemptions."""
    exemptions: dict[str, str] = getattr(migration, "exemptions", {})
    used = set()
    state, made = before.clone(), set()
    for operation in migration.operations:
        for step in _database_steps(operation):
            if isinstance(step, operations.CreateModel):
                made.add(step.name_lower)
            if problem := _problem(step, migration.app_label, state, made):
                used.add(type(step).__name__)
                if len(exemptions.get(type(step).__name__, "").strip()) < SHORTEST_REASON:
                    yield f"{migration}: {step.describe()}: {problem}"
        operation.state_forwards(migration.app_label, state)
    for name in sorted(exemptions.keys() - used):
        yield f"{migration}: it exempts {name}, but no such operation needs an exemption."


def _database_steps(operation: Operation) -> list[Operation]:
    if isinstance(operation, operations.SeparateDatabaseAndState):
        return [step for inner in operation.database_operations for step in _database_steps(inner)]
    return [operation]


def _problem(step: Operation, app: str, state: ProjectState, made: set[str]) -> str:
    """Returns why the version before breaks, or waits; empty if it does neither. `made` has the migration's tables."""
    if isinstance(step, REMOVED):
        return "Code of the version before still uses it. Remove it a release after its last use."
    if isinstance(step, RENAMED):
        return "Code of the version before uses the old name. Add the new one, and remove the old one a release later."
    if isinstance(step, operations.RunSQL):
        return "SQL is not read by this check."
    if getattr(step, "model_name_lower", getattr(step, "name_lower", "")) in made:
        return ""
    if isinstance(step, operations.AddIndex) and not isinstance(step, AddIndexConcurrently):
        return "PostgreSQL locks the table against writes meanwhile. Use edges.online_index, or say why it is small."
    if isinstance(step, CONSTRAINTS) and not isinstance(step, AddConstraintNotValid):
        return "Rows of the version before may break it, and checking all rows locks the table."
    if isinstance(step, operations.AddField) and not _has_default(step.field):
        return "The version before inserts rows without this column. Give it null=True or a db_default."
    if isinstance(step, operations.AlterField):
        was = state.models[app, step.model_name_lower].fields[step.name]
        return _narrowed(was, step.field)
    return ""


def _has_default(field: models.Field) -> bool:
    return bool(field.null or field.many_to_many or field.generated or field.has_db_default())


def _narrowed(was: models.Field, now: models.Field) -> str:
    if was.null and not now.null:
        return "The version before writes NULL."
    if was.get_internal_type() != now.get_internal_type() or was.db_column != now.db_column:
        return "The version before expects the old type and name. Add another column."
    if was.max_length and (now.max_length or 0) < was.max_length:
        return "The version before writes longer values."
    return ""


def main() -> None:
    loader = MigrationLoader(None)
    found = []
    for (app, name), migration in sorted(loader.disk_migrations.items()):
        number = name.partition("_")[0]
        is_ours = Path(str(sys.modules[migration.__module__].__file__)).parents[2] == ROOT
        if is_ours and int(number) > UNRELEASED.get(app, 1):
            found += problems(migration, loader.project_state((app, name), at_end=False))
    sys.stdout.write("".join(f"{sentence}\n" for sentence in found))
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
