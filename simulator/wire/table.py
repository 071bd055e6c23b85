"""The Table form of objects (meta.k8s.io/v1), by which kubectl prints."""

from typing import Any

from simulator.events import Record
from simulator.kinds import DEFINITION, Kind
from simulator.shelf import Page
from simulator.store import Store
from simulator.wire.columns import Columns, columns_for

Obj = dict[str, Any]


def wants_table(accept: str) -> bool:
    """Whether the first form asked for is a Table that we can make."""
    first = accept.partition(",")[0].replace(" ", "")
    return "as=Table" in first and "g=meta.k8s.io" in first and "v=v1" in first.split(";")


def _columns(store: Store, kind: Kind) -> Columns:
    record = store.shelf(DEFINITION).records.get(f"{kind.plural}.{kind.group}") if kind.is_custom else None
    return columns_for(kind, record.obj if record else None)


def rows_of(store: Store, kind: Kind, page: Page, include: str) -> Obj:
    columns = _columns(store, kind)
    metadata: Obj = {"resourceVersion": str(page.version)}
    if page.continue_:
        metadata["continue"] = page.continue_
    if page.remaining is not None:
        metadata["remainingItemCount"] = page.remaining
    now = store.clock.now()
    rows = [_row(columns, record, include, now) for record in page.records]
    return _table(metadata, columns, rows)


def single_row(store: Store, kind: Kind, record: Record, include: str) -> Obj:
    columns = _columns(store, kind)
    metadata = {"resourceVersion": str(record.version)}
    return _table(metadata, columns, [_row(columns, record, include, store.clock.now())])


def watched_row(store: Store, kind: Kind, record: Record, include: str, *, with_columns: bool) -> Obj:
    """Only the first event of a watch carries the column definitions."""
    table = single_row(store, kind, record, include)
    return table if with_columns else {**table, "columnDefinitions": None}


def _table(metadata: Obj, columns: Columns, rows: list[Obj]) -> Obj:
    definitions = [column.definition() for column in columns]
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": metadata,
        "columnDefinitions": definitions,
        "rows": rows,
    }


def _row(columns: Columns, record: Record, include: str, now: Any) -> Obj:
    cells = [column.cell(record.obj, now) for column in columns]
    row: Obj = {"cells": cells}
    if include != "None":
        row["object"] = record.obj if include == "Object" else _only_metadata(record.obj)
    return row


def _only_metadata(obj: Obj) -> Obj:
    return {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": obj["metadata"]}
