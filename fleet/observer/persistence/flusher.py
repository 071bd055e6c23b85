"""Flushes of the delta queue: rows in short transactions, then announcements to browsers and plans."""

import time
from collections.abc import Callable, Collection, Iterator
from datetime import datetime

import structlog
from django.db import DatabaseError, InterfaceError, OperationalError, connection
from django.db.models import Q

from fleet.freshness.lag import Lag
from fleet.map_cells.chunks import LAID_OUT, NodeMessage, node_messages
from fleet.messages import announce, listeners
from fleet.models import LostLease, Node, Pod
from fleet.observer.mirror.kinds import KINDS
from fleet.observer.mirror.rows import Columns
from fleet.observer.persistence.batch_write import CHUNK, Batch, Invalid, write
from fleet.observer.persistence.dependent_rows import count_all
from fleet.observer.persistence.upsert import Written
from fleet.observer.watches.delta_queue import DeltaQueue
from fleet.observer.watches.deltas import Pending
from fleet.observer.watches.watch_cursor import WatchCursor
from kube.client.decoder import Unread
from kube.resources import PODS

# SQLite has no queue of writers; a waiting writer retries at least every 100 ms. During a list, a person's halt must
# find a gap within a second.
BREATH_S = 0.11
BREATHE_EVERY_S = 0.6
NOT_A_ROWS_FAULT = (LostLease, OperationalError, InterfaceError)

log = structlog.get_logger(__name__)


class Flusher:
    """The writer of one cluster under one lease; numbers its batches for browsers."""

    def __init__(
        self,
        cluster_id: int,
        *,
        epoch: int,
        batch: int,
        clock: Callable[[], datetime],
        behind_since: datetime | None = None,
    ) -> None:
        self.cluster_id = cluster_id
        self.epoch = epoch
        self.batch = self._told = batch  # batches without new rows are not announced
        self._clock = clock
        self._breathed_at = self._wrote_at = time.monotonic()
        self._lag = Lag(behind_since=behind_since)
        self._last_waited_ms = 0  # wait of the oldest change of the last flush
        self._waiting_since: float | None = None

    def flush(self, deltas: DeltaQueue, *, is_last: bool = False, waiting_since: float | None = None) -> None:
        """Writes everything that waits; the last flush of a lease also writes the last updates.

        `waiting_since` is the monotonic receive time of the oldest change; None: nothing waits.

        :raises LostLease: when another worker took the lease
        """
        self._waiting_since = waiting_since
        if time.monotonic() - self._wrote_at >= BREATH_S:
            self._breathed_at = time.monotonic()  # no writes while waiting for changes
        listed = {name for name, cursor in deltas.cursors.items() if cursor.is_listing}
        was_behind = self._lag.is_behind
        self._add_missing(deltas)
        news = {cursor.kind for cursor in deltas.cursors.values() if cursor.is_urgent}
        whole = [cursor for cursor in deltas.cursors.values() if cursor.is_list_whole]
        written: list[Written] = []
        for number, batch in enumerate(self._batches(deltas, is_last=is_last)):
            if number:
                self._let_others_write()
            written += self._write(deltas, batch)
        if any(cursor.kind == PODS.name for cursor in whole):
            count_all(self.cluster_id)
        self._last_waited_ms = self._waited_ms()
        self._wrote_at = time.monotonic()
        self._announce(written, listed, has_news=bool(news or whole) or self._lag.is_behind != was_behind)

    def _add_missing(self, deltas: DeltaQueue) -> None:
        """Deletes rows that a complete list does not contain."""
        for cursor in deltas.cursors.values():
            if not cursor.is_list_whole:
                continue
            if not cursor.lists_all:
                continue
            for part in KINDS[cursor.kind].parts:
                there = part.rows_of(self.cluster_id).values_list("uid", flat=True)
                for uid in set(there) - cursor.listed_uids:
                    deltas.pending[part.name][uid] = Pending(None, "", 0)

    def _batches(self, deltas: DeltaQueue, *, is_last: bool) -> Iterator[Batch]:
        """Yields batches kind by kind; small kinds share a transaction."""
        batch, room = Batch(), CHUNK
        for name, cursor in deltas.cursors.items():
            is_touched = False
            for part in KINDS[name].parts:
                items = list(deltas.pending[part.name].items())
                deltas.pending[part.name].clear()
                is_touched = is_touched or bool(items)
                while items:
                    fitting = room // part.weight
                    if not fitting:
                        yield batch
                        batch, room = Batch(), CHUNK
                        continue
                    piece, items = items[:fitting], items[fitting:]
                    batch.rows.append((part, dict(piece)))
                    batch.listing |= {part.name} if cursor.is_listing else set()
                    room -= len(piece) * part.weight
            self._add_cursor(batch, cursor, is_touched=is_touched, is_last=is_last)
        yield batch

    def _add_cursor(self, batch: Batch, cursor: WatchCursor, *, is_touched: bool, is_last: bool) -> None:
        now = self._clock()
        if cursor.is_list_whole:
            cursor.end_list(now=now)
        if is_touched or cursor.is_due(now=now, is_last=is_last):
            batch.cursors.append(cursor)

    def _write(self, deltas: DeltaQueue, batch: Batch) -> list[Written]:
        """Writes a batch without its unwritable rows."""
        now = self._clock()
        is_numbered = batch.is_worth_a_number  # before its bookmarks count as written
        self._lag = self._lag.after(max(self._waited_ms(), self._last_waited_ms), now=now)
        try:
            written = write(self.cluster_id, batch, epoch=self.epoch, now=now, lag=self._lag)
        except NOT_A_ROWS_FAULT:
            raise
        except Exception as error:
            if not batch.size:
                raise
            return self._write_apart(deltas, batch, error)
        self.batch += is_numbered
        for kind, rows in batch.rows:
            _update_known(deltas.memory.of(kind.name), rows)
        return written

    def _write_apart(self, deltas: DeltaQueue, batch: Batch, error: Exception) -> list[Written]:
        if batch.size > 1:
            first, second = batch.halves()
            return self._write(deltas, first) + self._write(deltas, second)
        (kind, rows) = batch.rows[0]
        ((uid, pending),) = rows.items()
        name = kind.resource.name
        deltas.cursors[name].cannot_read(Unread.of(uid, _name_in(pending.row), _why_refused(error)))
        # An unchanged row is not tried again; a changed one is.
        deltas.memory.of(kind.name)[uid] = pending.fingerprint
        cursors = {cursor.kind: cursor for cursor in batch.cursors}
        cursors[name] = deltas.cursors[name]
        return self._write(deltas, Batch([], list(cursors.values()), batch.listing))

    def _waited_ms(self) -> int:
        return 0 if self._waiting_since is None else round((time.monotonic() - self._waiting_since) * 1000)

    def _let_others_write(self) -> None:
        if connection.vendor == "sqlite" and time.monotonic() - self._breathed_at > BREATHE_EVERY_S:
            time.sleep(BREATH_S)
            self._breathed_at = time.monotonic()

    def _announce(self, written: list[Written], listed: Collection[str], *, has_news: bool) -> None:
        if not written and not has_news:
            return
        kinds = {one.kind.name for one in written} | ({"bookmarks"} if has_news else set())
        announce.cluster_changed(
            self.cluster_id,
            seq=self.batch,
            prev=self._told,
            nodes=self._states(written, listed),
            kinds=kinds,
            at=self._clock(),
            is_laid_out_anew=any(map(_changes_map_layout, written)),
        )
        self._told = self.batch
        if has_news or any(one.kind.model in (Node, Pod) for one in written):
            listeners.notify(listeners.STATE_CHANGED, self.cluster_id)
        if has_news or any(one.kind.moves_plans for one in written):
            listeners.notify(listeners.CHANGED, self.cluster_id)

    def _states(self, written: list[Written], listed: Collection[str]) -> list[NodeMessage]:
        """The nodes that changed, or on which a pod did. Whole lists of pods are for pages to fetch."""
        keys = {row["id"] for one in written if one.kind.model is Node for row in one.alive}
        pods = [one for one in written if one.kind.name == PODS.name and PODS.name not in listed]
        names = {row["node_name"] for one in pods for row in (*one.alive, *one.gone)}
        found = Node.objects.filter(Q(pk__in=keys) | Q(name__in=names), cluster_id=self.cluster_id)
        return node_messages(found)


def _changes_map_layout(one: Written) -> bool:
    """Tells whether nodes were added, removed or moved on the map."""
    if one.kind.model is not Node:
        return False
    columns = ("is_gpu_node", "driver_unknown_since", *LAID_OUT)  # a row has no generated columns
    moved = (any(old[name] != row[name] for name in columns) for old, row in one.changed)
    return bool(one.new or one.gone) or any(moved)


def _name_in(row: Columns | None) -> str:
    return "/".join(str(row[key]) for key in ("namespace", "name") if row.get(key)) if row else "one that is gone"


def _why_refused(error: Exception) -> str:
    if isinstance(error, Invalid):
        return str(error)
    if isinstance(error, DatabaseError | OverflowError | ValueError):
        return f"The database rejects the row: {str(error)[:200]}"
    log.error("a row cannot be written", exc_info=error)
    return f"Quarterdeck fails on the object ({type(error).__name__}: {str(error)[:200]})"


def _update_known(known: dict[str, int], rows: dict[str, Pending]) -> None:
    for uid, pending in rows.items():
        if pending.row is None:
            known.pop(uid, None)
        else:
            known[uid] = pending.fingerprint
