"""Writes of batches: one transaction per batch, with bookmarks and lease."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db import transaction

from fleet.allocation.counters import count_written_nodes
from fleet.freshness.lag import Lag
from fleet.models import Bookmark, Observer
from fleet.observer.mirror.kinds import Kind
from fleet.observer.mirror.validation import why_invalid
from fleet.observer.persistence import dependent_rows
from fleet.observer.persistence.upsert import Written, compare, save
from fleet.observer.watches.deltas import Pending
from fleet.observer.watches.watch_cursor import WatchCursor

CHUNK = 200  # rows per transaction: 20 ms on a free core, so 100 ms on a busy one


@dataclass
class Batch:
    """The content of one transaction. A bookmark moves with the last rows of its kind."""

    rows: list[tuple[Kind, dict[str, Pending]]] = field(default_factory=list)
    cursors: list[WatchCursor] = field(default_factory=list)
    listing: set[str] = field(default_factory=set)  # kinds whose complete list this batch is part of

    @property
    def size(self) -> int:
        return sum(len(rows) for _, rows in self.rows)

    def halves(self) -> tuple["Batch", "Batch"]:
        """Returns two halves. The bookmarks move with the second."""
        room = self.size // 2
        first, second = Batch(listing=self.listing), Batch(cursors=self.cursors, listing=self.listing)
        for kind, rows in self.rows:
            items = list(rows.items())
            for half, piece in ((first, items[:room]), (second, items[room:])):
                if piece:
                    half.rows.append((kind, dict(piece)))
            room = max(0, room - len(items))
        return first, second

    @property
    def is_worth_a_number(self) -> bool:
        """Tells whether browsers should be notified; they poll whether a cluster is still observed."""
        return bool(self.rows) or any(cursor.is_urgent for cursor in self.cursors)


class Invalid(Exception):
    """An invalid row, detected before the write."""


def write(cluster_id: int, batch: Batch, *, epoch: int, now: datetime, lag: Lag) -> list[Written]:
    """Writes a batch. Returns the rows that really changed.

    :raises LostLease: nothing was written
    :raises Invalid: nothing was written
    """
    for kind, rows in batch.rows:
        for uid, pending in rows.items():
            if pending.row is not None and (reason := why_invalid(kind.model, {"uid": uid, **pending.row})):
                raise Invalid(reason)
    with transaction.atomic():
        Observer.keep(
            cluster_id,
            epoch=epoch,
            now=now,
            flushed=batch.is_worth_a_number,
            lag_ms=lag.ms,
            behind_since=lag.behind_since,
        )
        with count_written_nodes(cluster_id):
            written = [one for kind, rows in batch.rows for one in _write_kind(cluster_id, kind, rows, batch, now=now)]
        for kinds, columns in _new_alike(batch.cursors):
            Bookmark.objects.filter(cluster_id=cluster_id, kind__in=kinds).update(**columns)
    for cursor in batch.cursors:
        cursor.note_written()
    return [one for one in written if one]


def _new_alike(cursors: Iterable[WatchCursor]) -> list[tuple[list[str], dict[str, Any]]]:
    """Groups bookmarks with equal changes: on a quiet cluster, all have only a new time."""
    found: list[tuple[list[str], dict[str, Any]]] = []
    for cursor in cursors:
        new = cursor.new_columns()
        alike = next((kinds for kinds, columns in found if columns == new), None)
        if alike is not None:
            alike.append(cursor.kind)
        elif new:
            found.append(([cursor.kind], new))
    return found


def _write_kind(
    cluster_id: int,
    kind: Kind,
    rows: dict[str, Pending],
    batch: Batch,
    *,
    now: datetime,
) -> list[Written]:
    written = compare(cluster_id, kind, {uid: pending.row for uid, pending in rows.items()}, now=now)
    if not written:
        return []
    dependent_rows.precede(cluster_id, written, now=now)
    save(cluster_id, written, {uid: pending.resource_version for uid, pending in rows.items()}, now=now)
    return [written, *dependent_rows.follow(cluster_id, written, is_listing=kind.name in batch.listing, now=now)]
