"""Comparison of one kind's rows with the database, and the write of differences by uid."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from operator import itemgetter

from django.db import models

from fleet.allocation.counters import count_written_nodes
from fleet.allocation.cpu_memory import SET_BY_PODS
from fleet.allocation.devices import offered_on
from fleet.models import Node, Pod
from fleet.observer.mirror.diff import remember
from fleet.observer.mirror.dra_offers import merge_offers
from fleet.observer.mirror.kinds import Kind
from fleet.observer.mirror.rows import Columns
from fleet.observer.persistence.upsert_statement import keys_of, upsert_lists

ALLOCATION: Columns = {
    "gpu_allocated": 0,
    "slices_allocated": 0,
    "shares_allocated": 0,
    "requested": {},
    "devices_unhealthy": {},
    "driver_daemon_set": "",
    **dict.fromkeys(SET_BY_PODS, 0),
}  # set by its pods
FINDING_COUNTS: Columns = {"unresolved": 0, "critical": 0}  # set by its findings
NOT_COMPARED = frozenset(
    {"id", "cluster", "uid", "changed_at", "resource_version", "node", *ALLOCATION, *FINDING_COUNTS}
)
COMMON = ("cluster", "uid", "changed_at")
BORN_WITH: dict[type[models.Model], Columns] = {Node: ALLOCATION | FINDING_COUNTS}


@dataclass
class Written:
    """The differences of one kind's rows. Every row has a `uid`; existing ones have an `id`."""

    kind: Kind
    new: list[Columns] = field(default_factory=list)
    changed: list[tuple[Columns, Columns]] = field(default_factory=list)  # as it was, as it is
    gone: list[Columns] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.new or self.changed or self.gone)

    @property
    def alive(self) -> list[Columns]:
        return [*self.new, *(row for _, row in self.changed)]


@cache
def columns_of(model: type[models.Model]) -> tuple[str, ...]:
    every = model._meta.concrete_fields  # noqa: SLF001 - documented, in spite of its name
    return tuple(column.name for column in every if not column.generated and column.name not in NOT_COMPARED)


def compare(cluster_id: int, kind: Kind, rows: Mapping[str, Columns | None], *, now: datetime) -> Written:
    """Returns new, changed and removed rows. One query, one more for existing rows, and one more for nodes."""
    rows = _rows_with_devices(cluster_id, rows) if kind.model is Node else rows
    before = _existing_rows(cluster_id, kind, rows)
    written = Written(kind)
    for uid, row in rows.items():
        old = before.get(uid)
        if row is None:
            written.gone += [old] if old else []
            continue
        seen = _row_as_observed(kind, old, row, now=now)
        seen["uid"] = uid
        if old is None:
            if "created_at" in row:
                seen.setdefault("created_at", now)
            written.new.append(seen)
        elif any(old[column] != value for column, value in seen.items()):
            written.changed.append((old, {**old, **seen}))
    return written


def _existing_rows(cluster_id: int, kind: Kind, uids: Iterable[str]) -> dict[str, Columns]:
    """Returns the existing rows. During a first list only keys are read."""
    ids = keys_of(kind.model, cluster_id, "uid", uids).values()
    if not ids:
        return {}
    there = kind.rows_of(cluster_id).filter(pk__in=ids).order_by()
    return {row["uid"]: row for row in there.values("id", "uid", *columns_of(kind.model))}


def _rows_with_devices(cluster_id: int, rows: Mapping[str, Columns | None]) -> dict[str, Columns | None]:
    offered = offered_on(cluster_id, [row["name"] for row in rows.values() if row])
    return {uid: row and merge_offers(row, offered.get(row["name"])) for uid, row in rows.items()}


def _row_as_observed(kind: Kind, old: Columns | None, row: Columns, *, now: datetime) -> Columns:
    """Returns a copy, since the queued row is kept for a retry."""
    seen = remember(old, row, now=now) if kind.model is Node else dict(row)
    if "created_at" in seen and seen["created_at"] is None:
        del seen["created_at"]  # without a creation time, the stored one stays
    return seen


def save(cluster_id: int, written: Written, versions: Mapping[str, str], *, now: datetime) -> None:
    """Writes the result of `compare`; new nodes get their ids."""
    if written.kind.model is not Node:
        _save(cluster_id, written, versions, now=now)
        return
    there = [*written.gone, *(old for old, _ in written.changed)]
    with count_written_nodes(cluster_id, (row["id"] for row in there)) as keeping:
        _save(cluster_id, written, versions, now=now)
        ids = keys_of(Node, cluster_id, "uid", [row["uid"] for row in written.new])
        for row in written.new:
            row["id"] = ids[row["uid"]]
        keeping.born(ids.values())


def _save(cluster_id: int, written: Written, versions: Mapping[str, str], *, now: datetime) -> None:
    model = written.kind.model
    if written.gone:
        model.objects.filter(pk__in=[row["id"] for row in written.gone]).delete()
    own, columns = _own_columns(cluster_id, written, versions), columns_of(model)
    pick = itemgetter(*columns)
    values = (
        [cluster_id, row["uid"], now, *(value_of(row) for value_of in own.values()), *pick(row)]
        for row in written.alive
    )
    upsert_lists(model, (*COMMON, *own, *columns), values, only_new=BORN_WITH.get(model, {}))


def _own_columns(
    cluster_id: int, written: Written, versions: Mapping[str, str]
) -> dict[str, Callable[[Columns], str | int | None]]:
    """Returns columns that are written but not compared."""
    if written.kind.model is Node:
        return {"resource_version": lambda row: versions[row["uid"]]}
    if written.kind.model is Pod:
        names = {row["node_name"] for row in written.alive if row["node_name"]}
        node_ids = keys_of(Node, cluster_id, "name", names)
        return {"node": lambda row: node_ids.get(row["node_name"])}
    return {}
