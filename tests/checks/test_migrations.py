"""Migrations that the version before cannot stand are found."""

import importlib.util

import pytest
from django.db import connection, models
from django.db.migrations import Migration, operations
from django.db.migrations.state import ModelState, ProjectState

from edges.online_index import AddIndexOnline
from tests.rooms import ROOT

spec = importlib.util.spec_from_file_location("checked_migrations", ROOT / "bin" / "checks" / "migrations.py")
checked = importlib.util.module_from_spec(spec)
spec.loader.exec_module(checked)

TEXT = models.CharField(max_length=20)


def before() -> ProjectState:
    fields = [("id", models.BigAutoField(primary_key=True)), ("name", TEXT), ("note", models.TextField(null=True))]
    state = ProjectState()
    state.add_model(ModelState("fleet", "Lamp", fields))
    return state


def problems(*steps, **exemptions: str) -> list[str]:
    migration = Migration("0099_test", "fleet")
    migration.operations, migration.exemptions = list(steps), exemptions
    return list(checked.problems(migration, before()))


INDEX = models.Index(fields=["name"], name="lamps_by_name")


@pytest.mark.parametrize(
    "step",
    [
        operations.RemoveField("lamp", "name"),
        operations.DeleteModel("Lamp"),
        operations.RenameField("lamp", "name", "title"),
        operations.RenameModel("Lamp", "Light"),
        operations.AlterModelTable("lamp", "light"),
        operations.AddField("lamp", "colour", models.CharField(max_length=9, default="red")),
        operations.AlterField("lamp", "note", models.TextField(default="")),
        operations.AlterField("lamp", "name", models.CharField(max_length=10)),
        operations.AlterField("lamp", "name", models.TextField()),
        operations.AddIndex("lamp", INDEX),
        operations.AddConstraint("lamp", models.UniqueConstraint(fields=["name"], name="one_lamp")),
        operations.RunSQL("DROP TABLE lamp"),
        operations.SeparateDatabaseAndState(database_operations=[operations.RemoveField("lamp", "name")]),
    ],
    ids=lambda step: step.describe()[:40],
)
def test_what_breaks_the_version_before_is_found_unless_its_reason_is_written(step):
    (found,) = problems(step)
    inner = step.database_operations[0] if isinstance(step, operations.SeparateDatabaseAndState) else step

    assert found.startswith("fleet.0099_test: ")
    assert problems(step, **{type(inner).__name__: "No code has used it since version 1.2."}) == []
    assert problems(step, **{type(inner).__name__: "small"}) == [found]


@pytest.mark.parametrize(
    "step",
    [
        operations.AddField("lamp", "colour", models.CharField(max_length=9, default="red", db_default="red")),
        operations.AddField("lamp", "seen_at", models.DateTimeField(null=True)),
        operations.AlterField("lamp", "name", models.CharField(max_length=40)),
        AddIndexOnline("lamp", INDEX),
        operations.CreateModel("Shade", [("id", models.BigAutoField(primary_key=True))]),
        operations.RunPython(operations.RunPython.noop),
    ],
)
def test_what_only_adds_passes(step):
    assert problems(step) == []


def test_a_table_of_the_same_migration_may_be_changed():
    made = operations.CreateModel("Shade", [("id", models.BigAutoField(primary_key=True)), ("name", TEXT)])

    assert problems(made, operations.AddIndex("shade", INDEX)) == []


def test_an_exemption_that_exempts_nothing_is_found():
    (found,) = problems(RemoveField="No code has used it since version 1.2.")

    assert "no such operation needs an exemption" in found


@pytest.mark.django_db(transaction=True)
def test_an_index_is_created_online_and_removed():
    old, step = before(), AddIndexOnline("lamp", INDEX)
    new = old.clone()
    step.state_forwards("fleet", new)
    with connection.schema_editor(atomic=False) as editor:
        editor.create_model(old.apps.get_model("fleet", "Lamp"))
        step.database_forwards("fleet", editor, old, new)
        try:
            with connection.cursor() as cursor:
                assert "lamps_by_name" in connection.introspection.get_constraints(cursor, "fleet_lamp")
        finally:
            step.database_backwards("fleet", editor, new, old)
            editor.delete_model(old.apps.get_model("fleet", "Lamp"))
