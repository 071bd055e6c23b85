"""What every REST view is made of: read what was asked, load what may be seen, answer with a page."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, cached_property
from operator import attrgetter
from types import SimpleNamespace
from typing import Any, TypeVar, cast

from django.db.models import Model, QuerySet
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import OpenApiParameter
from rest_framework import generics, serializers
from rest_framework.fields import SkipField
from rest_framework.response import Response
from rest_framework.views import APIView

from edges.digits import SENTENCE
from edges.offsets import with_offset
from people.models import User

M = TypeVar("M", bound=Model)
Reader = Callable[[Any], Any]
KEY_HEADER = "Idempotency-Key"
KEY_AT_MOST = 100
KEY = OpenApiParameter(
    KEY_HEADER,
    {"type": "string", "maxLength": KEY_AT_MOST},
    OpenApiParameter.HEADER,
    description=(
        "Your own name for one command with one body. Sent again, the command is carried out once. "
        "409: the key named another command, or the effect was undone since; the sentence says what is so now."
    ),
)
MOST_UNKNOWN = 20  # named in one answer
NUMBERS = (serializers.IntegerField, serializers.DecimalField, serializers.FloatField, serializers.DateTimeField)


class Asked(serializers.Serializer):
    """A body. A field it does not have is refused: a misspelt one must not quietly become the usual."""

    def to_internal_value(self, data: Any) -> Any:
        wrong = {**self._unknown(data), **self._foreign_digits(data)} if isinstance(data, Mapping) else {}
        try:
            value = super().to_internal_value(data)
        except serializers.ValidationError as error:
            raise serializers.ValidationError({**cast("dict", error.detail), **wrong}) from error
        if wrong:
            raise serializers.ValidationError(wrong)
        return value

    def _foreign_digits(self, data: Mapping[str, Any]) -> dict[str, str]:
        """`int` reads the digits of every script; nobody means them in a number."""
        given = ((name, data.get(name)) for name, field in self.fields.items() if isinstance(field, NUMBERS))
        return {name: SENTENCE for name, value in given if isinstance(value, str) and not value.isascii()}

    def _unknown(self, data: Mapping[str, Any]) -> dict[str, str]:
        names = [name for name in data if name not in self.fields][:MOST_UNKNOWN]
        return {name[:100]: f"There is no such field. There are: {', '.join(self.fields)}." for name in names}


class AskedInstant(serializers.DateTimeField):
    """In a query. Without a zone it is UTC."""

    def __init__(self, **given: Any) -> None:
        super().__init__(required=False, default_timezone=UTC, **given)

    def to_internal_value(self, value: Any) -> Any:
        return super().to_internal_value(with_offset(value) if isinstance(value, str) else value)


class Edge(APIView):
    """A view that calls one thing."""

    @property
    def user(self) -> User:
        return cast("User", self.request.user)

    def read(self, body: type[Asked], **given: Any) -> dict[str, Any]:
        """The body, checked."""
        asked = body(data=self.request.data, **given)
        asked.is_valid(raise_exception=True)
        return cast("dict[str, Any]", asked.validated_data)

    def key(self) -> str:
        """The caller's name for this command: sent again, it is done once."""
        key = self.request.headers.get(KEY_HEADER, "")
        if len(key) > KEY_AT_MOST or not (key.isascii() and key.isprintable()):
            raise serializers.ValidationError({KEY_HEADER: f"At most {KEY_AT_MOST} printable ASCII characters."})
        return key

    def load(self, visible: QuerySet[M], pk: int) -> M:
        """404 for what is not there and for what the caller may not see: they look the same."""
        return get_object_or_404(visible, pk=pk)


class Listing(Edge, generics.ListAPIView):
    """A page of rows, each as `see` turns it into what is shown."""

    def see(self, rows: Sequence[Any]) -> Iterable[Any]:
        return rows

    def get(self, request: Any, *args: Any, **kwargs: Any) -> Response:
        page = self.paginate_queryset(self.filter_queryset(self.get_queryset()))
        shown = self.get_serializer(list(self.see(page or [])), many=True)
        return self.get_paginated_response(shown.data)


NOTHING = SimpleNamespace()  # what was found out about a row that is shown as it is


@dataclass(frozen=True)
class Flat:
    """A model's row and what was found out about it, read as one. Where both have a name, what was found is said."""

    _found: Any
    _row: Model

    def __post_init__(self) -> None:
        """Columns, and the rows read with it, are attributes of its own: a list asks for sixty of each row."""
        said, row = _names_of(type(self._found)), vars(self._row)  # type: ignore[arg-type] # a class has a hash
        several = {name: list(rows) for name, rows in row.get("_prefetched_objects_cache", {}).items()}
        read = row | row["_state"].fields_cache | several
        columns = {name: value for name, value in read.items() if name not in said}
        vars(self).update(columns | vars(self._found))

    def __getattr__(self, name: str) -> Any:
        is_found = name in vars(self._found) or hasattr(type(self._found), name)
        return getattr(self._found if is_found else self._row, name)


@cache
def _names_of(kind: type) -> frozenset[str]:
    return frozenset(dir(kind))


# Writes a model's row, and what was found out about it. A docstring would stand in the schema, at each heir of it.
class RowSerializer(serializers.ModelSerializer):
    row = ""  # the attribute of what is given that is the model's row; blank: what is given is the row

    def to_representation(self, instance: Any) -> Any:
        flat = Flat(instance, getattr(instance, self.row)) if self.row else Flat(NOTHING, instance)
        said = {}
        for name, read, write in self._columns:
            try:
                value = read(flat)
            except SkipField:
                continue
            said[name] = None if value is None else write(value)
        return said

    @cached_property
    def _columns(self) -> list[tuple[str, Reader, Reader]]:
        """By name, how each is read and written. Found once for all rows."""
        shown = ((name, field) for name, field in self.fields.items() if not field.write_only)
        return [(name, _reader_of(field), _writer_of(field)) for name, field in shown]


def _writer_of(field: serializers.Field) -> Reader:
    """The framework looks for the time zone of each instant; all of ours are in UTC."""
    return _spelt if type(field) is serializers.DateTimeField else field.to_representation


def _spelt(at: datetime) -> str:
    return at.astimezone(UTC).isoformat().removesuffix("+00:00") + "Z"


def _reader_of(field: serializers.Field) -> Reader:
    """The framework's own looks for defaults, calls and dots behind every name of every row.

    What is nested may be a relation that has nothing at its other end.
    """
    is_own = type(field).get_attribute is not serializers.Field.get_attribute
    is_plain = not is_own and not isinstance(field, serializers.BaseSerializer) and len(field.source_attrs) == 1
    return attrgetter(field.source_attrs[0]) if is_plain else field.get_attribute
