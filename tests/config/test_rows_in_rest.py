"""A model's row is written by one class, flat and frozen, byte for byte as the framework would write it."""

from typing import Any

import pytest
from django.apps import apps
from django.db import connection
from django.test.utils import CaptureQueriesContext
from rest_framework import serializers

from capacity import compared_nodes
from edges.rest import Asked, RowSerializer
from health.gpus import roster_cache
from tests.config.test_who_may import READS


def heirs(kind: Any) -> set[Any]:
    return {kind, *(heir for each in kind.__subclasses__() for heir in heirs(each))}


def test_every_row_of_ours_is_written_by_the_one_class():
    ours = {app.name for app in apps.get_app_configs() if not app.name.startswith(("django.", "rest_framework"))}
    written = [each for each in heirs(serializers.ModelSerializer) if each.__module__.partition(".")[0] in ours]

    assert [each.__name__ for each in written if not issubclass(each, RowSerializer | Asked)] == []


@pytest.fixture
def framework(monkeypatch):
    """Rows that are shown as they are, written by the framework."""
    flat = RowSerializer.to_representation

    def written(serializer, instance):
        if serializer.row:
            return flat(serializer, instance)
        return serializers.ModelSerializer.to_representation(serializer, instance)

    return lambda: monkeypatch.setattr(RowSerializer, "to_representation", written)


def answers(caller, there: dict[str, int]) -> dict[str, tuple[bytes, int]]:
    found = {}
    for _, path in READS:
        with CaptureQueriesContext(connection) as queries:
            said = caller.get(path.format(**there))
            found[path] = (b"".join(said) if said.streaming else said.content, len(queries))
    return found


@pytest.mark.filterwarnings("ignore:StreamingHttpResponse must consume asynchronous")
def test_what_is_read_is_written_as_the_framework_writes_it_and_costs_no_query_more(
    there, root, framework, monkeypatch
):
    for cache in (roster_cache, compared_nodes):  # both by the clock on the wall, which a loaded machine outlasts
        monkeypatch.setattr(cache, "KEPT_S", 3600.0)
    answers(root, there)  # what is remembered is asked for once
    flat = answers(root, there)
    framework()
    theirs = answers(root, there)

    assert {path: text for path, (text, _) in flat.items()} == {path: text for path, (text, _) in theirs.items()}
    assert [path for path in flat if flat[path][1] > theirs[path][1]] == []
