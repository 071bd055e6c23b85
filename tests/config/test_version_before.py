"""Code of the version before keeps its rows in today's tables: during an upgrade, both versions use one database."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.core.exceptions import FieldError
from django.db import DatabaseError, models, transaction
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.state import StateApps
from django.utils import timezone

from health.sources.hours import provide_partition
from tests.checks.test_migrations import checked
from tests.rooms import ROOT

pytestmark = [pytest.mark.sqlite, pytest.mark.django_db]
VALUES: dict[str, Any] = {
    "BinaryField": b"x", "BooleanField": False, "DecimalField": 1, "DurationField": timedelta(minutes=1),
    "FloatField": 1.0, "JSONField": {}, "BigIntegerField": 1, "IntegerField": 1, "PositiveBigIntegerField": 1,
    "PositiveIntegerField": 1, "PositiveSmallIntegerField": 1, "SlugField": "x", "TextField": "x",
}  # fmt: skip


OURS = {app.label for app in apps.get_app_configs() if Path(app.path).parent == ROOT and app.models_module}


def is_oldest(app: str, number: int, _newest: int) -> bool:
    return number <= checked.UNRELEASED.get(app, 1)


def is_not_newest(_app: str, number: int, newest: int) -> bool:
    return number < max(newest, 2)


@pytest.mark.parametrize("is_known", [is_oldest, is_not_newest], ids=["the oldest", "the last migrations missing"])
def test_code_of_the_version_before_writes_and_reads_every_table(is_known):
    old = models_known_by(is_known)
    provide_partition(timezone.now())
    failures = {}
    for model in old.get_models():
        if model._meta.app_label not in OURS:
            continue
        try:
            with transaction.atomic():
                row = made(model, {})
                row.save(force_update=True)
                assert model.objects.filter(pk=row.pk).delete()[0]
                transaction.set_rollback(True)
        except (DatabaseError, FieldError) as error:
            failures[model._meta.label] = f"{type(error).__name__}: {error}"

    assert len(old.get_models()) > 50
    assert not failures


def models_known_by(is_known) -> StateApps:
    """Returns the models as they were when only these migrations existed."""
    loader = MigrationLoader(None)
    numbers = {key: int(key[1].partition("_")[0]) for key in loader.disk_migrations if key[0] in OURS}
    newest = {app: max(n for (of, _), n in numbers.items() if of == app) for app, _ in numbers}
    known = [key for key, number in numbers.items() if is_known(key[0], number, newest[key[0]])]
    others = [key for key in loader.graph.leaf_nodes() if key[0] not in OURS]
    return loader.project_state([*known, *others]).apps


def made(model: type[models.Model], rows: dict[type[models.Model], models.Model]) -> models.Model:
    """Inserts a row as the old code does: with the columns that it knows, and NULL wherever it may write NULL."""
    values = {}
    for field in model._meta.concrete_fields:
        if isinstance(field, models.AutoField) or (field.null and not field.primary_key):
            continue
        if not field.is_relation:
            values[field.name] = value_of(field)
        else:
            values[field.name] = rows.get(field.related_model) or made(field.related_model, rows)
    rows[model] = model.objects.create(**values)
    return rows[model]


def value_of(field: models.Field) -> Any:
    if field.has_default() or field.blank:
        return field.get_default()
    if field.choices:
        return field.choices[0][0]
    kind = field.get_internal_type()
    now = timezone.now()
    times = {"DateField": now.date(), "DateTimeField": now, "TimeField": now.time()}
    return ("x" * min(2, field.max_length or 2)) if kind == "CharField" else {**VALUES, **times}[kind]
