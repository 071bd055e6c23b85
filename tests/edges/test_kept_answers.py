"""What an answer of REST leaves to the garbage collector."""

import gc
import weakref
from collections.abc import Iterator
from typing import ClassVar

import pytest
from rest_framework import serializers
from rest_framework.renderers import JSONRenderer
from rest_framework.response import Response
from rest_framework.test import APIRequestFactory

from edges.rest import Edge, Listing


class Row:
    """A row that tells whether it is still there."""

    name = "a"
    known: ClassVar[list["weakref.ref[Row]"]] = []

    def __init__(self) -> None:
        self.known.append(weakref.ref(self))


class ShownRow(serializers.Serializer):
    name = serializers.CharField()


class OneRow(Edge):
    authentication_classes = permission_classes = ()
    renderer_classes = (JSONRenderer,)

    def get(self, _request) -> Response:
        return Response(ShownRow(Row()).data)


class AllRows(Listing):
    authentication_classes = permission_classes = filter_backends = ()
    renderer_classes = (JSONRenderer,)
    serializer_class = ShownRow

    def get_queryset(self):
        return [Row()]


@pytest.fixture
def uncollected() -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()


@pytest.mark.parametrize("view", [OneRow, AllRows])
def test_rows_go_with_their_answer(view: type[Edge], uncollected: None):
    Row.known.clear()
    answer = view.as_view()(APIRequestFactory().get("/rows")).render()
    assert b'"name":"a"' in answer.content

    del answer

    assert [known() for known in Row.known] == [None]
