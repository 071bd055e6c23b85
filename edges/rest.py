"""The base classes of REST views and serializers."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, cached_property
from operator import attrgetter
from types import SimpleNamespace
from typing import Any, TypeVar, cast

from django.db.models import Model, QuerySet
from django.shortcuts import get_object_or_404
from django.utils.http import parse_etags
from drf_spectacular.utils import OpenApiParameter, extend_schema_field
from rest_framework import generics, serializers
from rest_framework.fields import SkipField
from rest_framework.response import Response
from rest_framework.views import APIView

from edges.concurrent_edits import LENGTH
from edges.digits import SENTENCE
from edges.idempotency import why_no_key
from edges.offsets import with_offset
from people.models import User
from wording.reports import LONGEST_SUMMARY, LONGEST_TITLE

M = TypeVar("M", bound=Model)
Reader = Callable[[Any], Any]
KEY_HEADER = "Idempotency-Key"
KEY_AT_MOST = 100
KEY = OpenApiParameter(
    KEY_HEADER,
    {"type": "string", "maxLength": KEY_AT_MOST},
    OpenApiParameter.HEADER,
    description=(
        "Your own name for one command with one body. A repeat with the same key runs once. "
        "409: the key was used for another command, or the effect was undone. The sentence gives the current state."
    ),
)
IF_MATCH = "If-Match"
SAFE = {"GET", "HEAD", "OPTIONS"}
MOST_UNKNOWN = 20  # that one answer lists
NUMBERS = (serializers.IntegerField, serializers.DecimalField, serializers.FloatField, serializers.DateTimeField)


@extend_schema_field({"oneOf": [{"type": "string"}, {"type": "number"}]})
class EvidenceValue(serializers.ReadOnlyField):
    """Text or a number."""


class EvidenceItemSerializer(serializers.Serializer):
    """A labelled value."""

    label = serializers.CharField()  # type: ignore[assignment]
    value = EvidenceValue()
    unit = serializers.CharField(help_text='"s": seconds. "UTC": an instant in ISO 8601. Blank: text or a count.')


class ReportSerializer(serializers.Serializer):
    """A result for people: a title, a summary line, evidence and steps."""

    title = serializers.CharField(help_text=f"At most {LONGEST_TITLE} characters.")
    summary = serializers.CharField(help_text=f"At most {LONGEST_SUMMARY} characters. May be blank.")
    evidence = EvidenceItemSerializer(many=True)
    steps = serializers.ListField(child=serializers.CharField(), help_text="Recommended steps for a person, in order.")


class Asked(serializers.Serializer):
    """A request body that refuses unknown fields: a typo must not silently mean the default."""

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
        """Refuses numbers in other scripts, which `int` would read."""
        given = ((name, data.get(name)) for name, field in self.fields.items() if isinstance(field, NUMBERS))
        return {name: SENTENCE for name, value in given if isinstance(value, str) and not value.isascii()}

    def _unknown(self, data: Mapping[str, Any]) -> dict[str, str]:
        names = [name for name in data if name not in self.fields][:MOST_UNKNOWN]
        return {name[:100]: f"Unknown field. Known fields: {', '.join(self.fields)}." for name in names}


class AskedInstant(serializers.DateTimeField):
    """An instant in a query; UTC when it has no offset."""

    def __init__(self, **given: Any) -> None:
        super().__init__(required=False, default_timezone=UTC, **given)

    def to_internal_value(self, value: Any) -> Any:
        return super().to_internal_value(with_offset(value) if isinstance(value, str) else value)


class Edge(APIView):
    """A view that calls one function.

    A view with a `mark_field` sends the value of this field as ETag, and compares `If-Match` of a write with it: the
    write gets the mark as the field `guard_field` of its body, or asks `was()`, and refuses under its lock.
    """

    mark_field = ""  # of the answer; blank: no ETag
    guard_field = "was"

    def initial(self, request: Any, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        if IF_MATCH in request.headers and request.method not in SAFE and not self.mark_field:
            raise serializers.ValidationError({IF_MATCH: "This resource has no ETag, so nothing can be compared."})

    def finalize_response(self, request: Any, response: Any, *args: Any, **kwargs: Any) -> Any:
        final = super().finalize_response(request, response, *args, **kwargs)
        if isinstance(final, Response):
            final.add_post_render_callback(_let_go_of_rows)
        data = getattr(final, "data", None)
        shown = data if self.mark_field and final.status_code < 300 and isinstance(data, Mapping) else {}
        if mark := shown.get(self.mark_field):
            final["ETag"] = f'"{mark}"'
        return final

    def was(self) -> str:
        """Returns the mark in `If-Match`. Blank: the caller compares nothing."""
        header = self.request.headers.get(IF_MATCH, "").strip()
        tags = parse_etags(header)
        if header and (len(tags) != 1 or tags[0].endswith('""')):
            raise serializers.ValidationError({IF_MATCH: "Send the one ETag that you read, with its quotes."})
        return tags[0].removeprefix("W/").strip('"')[:LENGTH] if tags and tags != ["*"] else ""

    @property
    def user(self) -> User:
        return cast("User", self.request.user)

    def read(self, body: type[Asked], **given: Any) -> dict[str, Any]:
        """Returns the validated body."""
        data = self.request.data
        if (was := self.was()) and isinstance(data, Mapping) and self.guard_field in body().fields:
            data = {**data, self.guard_field: was}
        serializer = body(data=data, **given)
        serializer.is_valid(raise_exception=True)
        return cast("dict[str, Any]", serializer.validated_data)

    def key(self) -> str:
        """Returns the caller's idempotency key."""
        key = self.request.headers.get(KEY_HEADER, "")
        if len(key) > KEY_AT_MOST or not (key.isascii() and key.isprintable()):
            raise serializers.ValidationError({KEY_HEADER: f"At most {KEY_AT_MOST} printable ASCII characters."})
        if why := why_no_key(key):
            raise serializers.ValidationError({KEY_HEADER: why})
        return key

    def load(self, visible: QuerySet[M], pk: int) -> M:
        """Returns the row. Answers 404 both for a missing row and for one the caller may not see."""
        return get_object_or_404(visible, pk=pk)


def _let_go_of_rows(response: Response) -> None:
    """Separates an answer from its view, and its rows from their serializer, once it is rendered.

    View and answer refer to each other, as a serializer and its fields do. So the rows would stay until the garbage
    collector looks, which then delays another request by the time that it takes to free those of many answers.
    """
    response.renderer_context["view"].response = None  # type: ignore[attr-defined] # DRF's own, without a type
    if serializer := getattr(response.data, "serializer", None):
        vars(serializer).update(instance=None, _data=None, _args=())  # where it keeps them


class Listing(Edge, generics.ListAPIView):
    """A page of rows; `see` turns each row into the object to serialize."""

    def see(self, rows: Sequence[Any]) -> Iterable[Any]:
        return rows

    def get(self, request: Any, *args: Any, **kwargs: Any) -> Response:
        page = self.paginate_queryset(self.filter_queryset(self.get_queryset()))
        rows = list(self.see(page or []))  # before the serializer: its context may be about them
        # without rows of its own: see `_let_go_of_rows`
        return self.get_paginated_response(self.get_serializer(many=True).to_representation(rows))


NOTHING = SimpleNamespace()  # computed values of a row that has none


@dataclass(frozen=True)
class Flat:
    """A model's row and the values computed for it, read as one object. A computed value wins."""

    _computed: Any
    _row: Model

    def __post_init__(self) -> None:
        """Copies columns and related rows into attributes: a list reads sixty of each row."""
        computed_names, row = _names_of(type(self._computed)), vars(self._row)  # type: ignore[arg-type] # a class has a hash
        related = {name: list(rows) for name, rows in row.get("_prefetched_objects_cache", {}).items()}
        read = row | row["_state"].fields_cache | related
        columns = {name: value for name, value in read.items() if name not in computed_names}
        vars(self).update(columns | vars(self._computed))

    def __getattr__(self, name: str) -> Any:
        is_computed = name in vars(self._computed) or hasattr(type(self._computed), name)
        return getattr(self._computed if is_computed else self._row, name)


@cache
def _names_of(kind: type) -> frozenset[str]:
    return frozenset(dir(kind))


# Serializes a model's row with its computed values. A docstring would appear in the schema of every subclass.
class RowSerializer(serializers.ModelSerializer):
    row = ""  # the attribute that holds the model's row; blank: the instance is the row

    def to_representation(self, instance: Any) -> Any:
        flat = Flat(instance, getattr(instance, self.row)) if self.row else Flat(NOTHING, instance)
        shown = {}
        for name, read, write in self._columns:
            try:
                value = read(flat)
            except SkipField:
                continue
            shown[name] = None if value is None else write(value)
        return shown

    @cached_property
    def _columns(self) -> list[tuple[str, Reader, Reader]]:
        """Returns name, reader and writer of each field; found once for all rows."""
        shown = ((name, field) for name, field in self.fields.items() if not field.write_only)
        return [(name, _reader_of(field), _writer_of(field)) for name, field in shown]


def _writer_of(field: serializers.Field) -> Reader:
    """Returns the writer of a field. Instants are in UTC, so DRF's time zone lookup is skipped."""
    return _instant_text if type(field) is serializers.DateTimeField else field.to_representation


def _instant_text(at: datetime) -> str:
    return at.astimezone(UTC).isoformat().removesuffix("+00:00") + "Z"


def _reader_of(field: serializers.Field) -> Reader:
    """Returns the reader of a field. DRF's own reader looks for defaults, calls and dots on every row.

    Nested serializers keep it, since a relation may be empty.
    """
    is_own = type(field).get_attribute is not serializers.Field.get_attribute
    is_plain = not is_own and not isinstance(field, serializers.BaseSerializer) and len(field.source_attrs) == 1
    return attrgetter(field.source_attrs[0]) if is_plain else field.get_attribute
