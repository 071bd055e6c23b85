"""In which order rows come where nobody asks for one."""

import pytest
from django.db.models import Model

from tests.own_apps import own_apps

pytestmark = pytest.mark.sqlite

# Few rows, which people read by the names of their places.
BY_THEIR_PLACES = {"MaintenanceWindow", "PoolLimits", "TelemetrySource"}


def is_by_own_columns(model: type[Model]) -> bool:
    related = {field.name for field in model._meta.concrete_fields if field.is_relation}
    return not any(str(name).lstrip("-").split("__")[0] in related for name in model._meta.ordering)


def test_rows_come_by_columns_of_their_own():
    """By a related row's, each query joins its table, and no index gives the order."""
    models = [model for app in own_apps() for model in app.get_models()]

    assert {model.__name__ for model in models if not is_by_own_columns(model)} == BY_THEIR_PLACES
