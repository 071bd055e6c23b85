"""What Django makes anew with each query, made once: the columns of a model, and the order of its rows.

Most of a round in process is Django's making of SQL. What is asked, and in which words, stays as it is: whatever does
not depend on the model and its columns alone is left to Django, and a test compares the two word for word.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from django.db.models.expressions import Col
from django.db.models.options import Options
from django.db.models.sql.compiler import SQLCompiler

SELECT, ORDER, CONVERT = SQLCompiler.get_select, SQLCompiler.get_order_by, SQLCompiler.get_converters


class Compiled:
    """What was made before, by all that it depends on."""

    def __init__(self) -> None:
        self._selects: dict[Any, Any] = {}
        self._orders: dict[Any, Any] = {}
        self._converters: dict[Any, Any] = {}
        self._columns: dict[Any, set[str]] = {}

    def select(self, compiler: SQLCompiler, with_col_aliases: bool = False) -> Any:  # noqa: FBT001, FBT002 (as Django's)
        key = None if with_col_aliases else _columns_of(compiler.query)
        if key is None:
            return SELECT(compiler, with_col_aliases)
        if compiler.query.default_cols:
            compiler.query.get_initial_alias()
        if key not in self._selects:
            self._selects[key] = SELECT(compiler)
        return self._selects[key]

    def order_by(self, compiler: SQLCompiler) -> Any:
        query = compiler.query
        ordering = _ordering_of(query)
        columns = None if ordering is None or query.group_by is not None else _columns_of(query)
        if columns is None or not self._own(query.get_meta()).issuperset(each.lstrip("-") for each in ordering or ()):
            return ORDER(compiler)
        if ordering:
            query.get_initial_alias()  # counts the table as used, as Django does on its way
        key = columns, tuple(ordering or ()), query.standard_ordering
        if key not in self._orders:
            self._orders[key] = ORDER(compiler)
        return self._orders[key]

    def converters(self, compiler: SQLCompiler, expressions: list[Any]) -> Any:
        columns = tuple(each.target if isinstance(each, Col) else None for each in expressions)
        if None in columns:
            return CONVERT(compiler, expressions)
        outputs = tuple(id(each.output_field) for each in expressions)  # fields live as long as their model
        if (columns, outputs) not in self._converters:
            self._converters[columns, outputs] = CONVERT(compiler, expressions)
        return self._converters[columns, outputs]

    def _own(self, meta: Options[Any]) -> set[str]:
        """Names by which a query is ordered without another table."""
        if meta not in self._columns:
            fields = [each for each in meta.concrete_fields if not each.is_relation]
            ids = {each.attname for each in meta.concrete_fields if each.is_relation}
            self._columns[meta] = {"pk", *(each.name for each in fields)} | ids
        return self._columns[meta]


def _columns_of(query: Any) -> Any:
    """Which columns a query asks for; None: more than columns of tables."""
    if query.select_related or query.extra or query.annotations or query.combinator:
        return None
    if query.default_cols:
        if query.selected is not None:
            return None
        names, are_left_out = query.deferred_loading  # by defer(), else by only()
        return query.model, query.base_table or query.get_meta().db_table, frozenset(names), are_left_out
    if not all(isinstance(each, Col) for each in query.select):
        return None
    columns = tuple((each.alias, each.target) for each in query.select)
    selected = None if query.selected is None else tuple(query.selected.items())
    return query.model, query.base_table, columns, selected


def _ordering_of(query: Any) -> Any:
    """As Django chooses it; None: by something else than names."""
    if query.extra_order_by:
        return None
    ordering = query.order_by or (query.get_meta().ordering if query.default_ordering else ())
    return ordering if all(isinstance(each, str) for each in ordering) else None


@contextmanager
def compiled_once() -> Iterator[None]:
    """In all queries of this process."""
    compiled = Compiled()
    with (
        mock.patch.object(
            SQLCompiler, "get_select", lambda self, *given, **named: compiled.select(self, *given, **named)
        ),
        mock.patch.object(SQLCompiler, "get_order_by", lambda self: compiled.order_by(self)),
        mock.patch.object(
            SQLCompiler, "get_converters", lambda self, expressions: compiled.converters(self, expressions)
        ),
    ):
        yield
