"""Cursors of lists: a page continues after the last row of the page before, so that new rows move no page (keyset).

The cursor is signed and holds the values by which the list is ordered. Nulls are last in ascending and first in
descending order on every database.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_, or_
from typing import Any, TypeVar

from django.core.signing import BadSignature, Signer
from django.db.models import F, Model, Q, QuerySet
from django.db.models.constants import LOOKUP_SEP
from django.db.models.expressions import OrderBy

M = TypeVar("M", bound=Model)
LONGEST_CURSOR = 4_000  # characters; names of objects are much shorter


class BadCursor(Exception):
    """The cursor belongs to another list or ordering, or is no cursor."""


@dataclass(frozen=True)
class OrderColumn:
    """A column of an ordering."""

    path: str
    is_descending: bool
    is_nullable: bool

    @property
    def text(self) -> str:
        return f"-{self.path}" if self.is_descending else self.path

    def order(self) -> OrderBy:
        """Returns the ordering. Without nulls it names no place for them: SQLite would sort the whole table, instead of
        reading an index."""
        if not self.is_nullable:
            return OrderBy(F(self.path), descending=self.is_descending)
        return F(self.path).desc(nulls_first=True) if self.is_descending else F(self.path).asc(nulls_last=True)

    def same(self, value: Any) -> Q:
        return Q(**{f"{self.path}__isnull": True}) if value is None else Q(**{self.path: value})

    def after(self, value: Any) -> Q | None:
        """Returns the rows after a value. None: there are none."""
        if value is None:
            return Q(**{f"{self.path}__isnull": False}) if self.is_descending else None
        later = Q(**{f"{self.path}__{'lt' if self.is_descending else 'gt'}": value})
        is_null_later = self.is_nullable and not self.is_descending
        return later | Q(**{f"{self.path}__isnull": True}) if is_null_later else later

    def not_before(self, value: Any) -> Q:
        """Returns the bound that lets the database begin inside an index. Empty: the column has nulls."""
        return Q() if self.is_nullable else Q(**{f"{self.path}__{'lte' if self.is_descending else 'gte'}": value})


PK = OrderColumn("pk", is_descending=False, is_nullable=False)


def keys_of(rows: QuerySet[M]) -> tuple[OrderColumn, ...]:
    """Returns the columns by which rows are ordered, ending with the primary key, so that no two rows are equal."""
    names = rows.query.order_by or rows.model._meta.ordering or ()  # noqa: SLF001 - documented, in spite of its name
    keys = tuple(key for name in names for key in _expanded(rows, str(name)))
    return keys if any(key.path == "pk" for key in keys) else (*keys, PK)


def _expanded(rows: QuerySet[M], name: str) -> Iterator[OrderColumn]:
    """Yields the columns of a name. A relation is ordered as Django does it: by the ordering of its model, else by its
    key."""
    path, is_descending = name.lstrip("-"), name.startswith("-")
    model: Any = rows.model
    is_nullable = False
    for part in path.split(LOOKUP_SEP):
        if part == "pk":
            break
        if part in rows.query.annotations:
            is_nullable = True
            break
        field = model._meta.get_field(part)  # noqa: SLF001
        is_nullable = is_nullable or field.null
        model = field.related_model if field.is_relation and part != field.attname else None
    else:
        if model is not None and (inner := model._meta.ordering):  # noqa: SLF001
            for each in inner:
                yield from _expanded(rows, _combined(path, str(each), is_descending=is_descending))
            return
    yield OrderColumn(path, is_descending, is_nullable)


def _combined(path: str, inner: str, *, is_descending: bool) -> str:
    descends = is_descending != inner.startswith("-")
    return f"{'-' if descends else ''}{path}{LOOKUP_SEP}{inner.lstrip('-')}"


def rows_after(rows: QuerySet[M], keys: Sequence[OrderColumn], cursor: str, *, of: str) -> QuerySet[M]:
    """Returns the rows of a list in the order of `keys`, after the cursor. `of` names the list.

    :raises BadCursor: when the cursor is not one of this list in this order
    """
    ordered = rows.order_by(*(key.order() for key in keys))
    if not cursor:
        return ordered
    try:
        values = _signer(keys, of=of).unsign_object(cursor[: LONGEST_CURSOR + 1])
    except (BadSignature, ValueError) as error:
        raise BadCursor from error
    branches = []
    for position, (key, value) in enumerate(zip(keys, values, strict=True)):
        if (after := key.after(value)) is not None:
            before = zip(keys[:position], values[:position], strict=True)
            branches.append(reduce(and_, (each.same(its) for each, its in before), Q()) & after)
    return ordered.filter(keys[0].not_before(values[0]), reduce(or_, branches)) if branches else ordered.none()


def cursor_after(row: Model, keys: Sequence[OrderColumn], *, of: str) -> str:
    """Returns the cursor behind a row."""
    return _signer(keys, of=of).sign_object([_written(_value(row, key.path)) for key in keys])


def _signer(keys: Sequence[OrderColumn], *, of: str) -> Signer:
    return Signer(salt=f"edges.cursors:{of}:{','.join(key.text for key in keys)}")


def _value(row: Any, path: str) -> Any:
    for part in path.split(LOOKUP_SEP):
        row = None if row is None else getattr(row, part)
    return row.pk if isinstance(row, Model) else row


def _written(value: Any) -> Any:
    """Returns a value as JSON can hold it; columns read it back."""
    return value if value is None or isinstance(value, bool | int | str) else str(value)
