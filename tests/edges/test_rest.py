from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest
from rest_framework import serializers

from edges.rest import Flat, _writer_of
from fleet.models import Node
from tests import make
from tests.make import NOON


@dataclass(frozen=True)
class Found:
    row: Any
    secret: str | None

    @property
    def sum(self) -> int:
        return self.row.one + self.row.two

    @property
    def broken(self) -> int:
        return self.row.not_there


def flat() -> Any:
    nothing_with_it = SimpleNamespace(fields_cache={})
    row = SimpleNamespace(one=1, two=2, secret="only for some", broken=7, _state=nothing_with_it)
    return Flat(Found(row, secret=None), row)


def test_a_row_and_what_was_found_are_read_as_one():
    assert (flat().one, flat().sum) == (1, 3)


def test_what_was_found_is_said_also_where_that_is_nothing():
    assert flat().secret is None


def test_what_cannot_be_found_is_not_taken_from_the_row():
    with pytest.raises(AttributeError, match="not_there"):
        _ = flat().broken


def test_nothing_is_hung_on_it():
    with pytest.raises(AttributeError):
        flat().one = 2


@pytest.mark.django_db
def test_what_was_read_with_a_row_is_not_asked_for_again(django_assert_num_queries):
    cluster = make.a_cluster()
    make.a_node(cluster, pool=make.a_pool(cluster, "h200"))
    (node,) = Node.objects.select_related("cluster").prefetch_related("pools")

    with django_assert_num_queries(0):
        read = Flat(Found(node, secret=None), node)

        assert (read.cluster, [pool.name for pool in read.pools]) == (cluster, ["h200"])


def test_an_instant_is_written_as_the_framework_writes_it():
    field = serializers.DateTimeField()
    for at in (NOON, NOON.replace(microsecond=120)):
        assert _writer_of(field)(at) == field.to_representation(at)
