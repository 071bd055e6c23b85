"""The list-watch of one cluster for one lease: a reflector a kind fills one queue, this thread is the only writer."""

import time
from collections.abc import Callable
from datetime import datetime
from queue import Empty, Queue
from threading import Event

from fleet.observer.lease.connections import give_back
from fleet.observer.mirror.kinds import KINDS
from fleet.observer.persistence.flusher import Flusher
from fleet.observer.watches.delta_queue import DeltaQueue
from fleet.observer.watches.deltas import Changed, Delta
from fleet.observer.watches.reflector import Reflector
from kube.client.connection import Connection

FLUSH_EVERY_S = 0.15  # the first change goes at once; of 50 a second, eight share a transaction and a frame
TICK_S = 10.0  # the lease is 30 s, and what was heard is noted this often
LOOK_UP_S = 0.5  # how soon a stop is noticed
QUEUED = 32  # a page of a list is one: what a slow writer lets pile up must stay small
FULL = 4000  # rows that are written without waiting for more: so many at once leave others a gap to write in
DEAF_S = 10.0  # after which a list-watch of which no kind is heard any more is closed: others wait for its thread
LIST_S = 900.0  # how much longer than its lease it stays open for a list: what is thrown away never ends


class ListWatch:
    """Holds the watches of a cluster open until `until` (monotonic) or a stop."""

    def __init__(
        self,
        connection: Connection,
        deltas: DeltaQueue,
        flusher: Flusher,
        *,
        make_sure: Callable[[], None],
        clock: Callable[[], datetime],
        stop: Event,
        until: float,
    ) -> None:
        """`make_sure` raises ForeignCluster when another cluster answers by now."""
        self._make_sure = make_sure
        self._deltas = deltas
        self._flusher = flusher
        self._clock = clock
        self._stop = stop
        self._until = until
        self._incoming: Queue[Delta] = Queue(maxsize=QUEUED)
        self._flush_from = 0.0
        self._waiting_since: float | None = None  # when the oldest change was received that is not written
        self._tick_at = time.monotonic() + TICK_S
        self._deaf_since: float | None = None
        self._reflectors = [self._reflector(name, connection) for name in deltas.cursors]

    def hold(self) -> None:
        """:raises LostLease: when somebody else has the cluster by now
        :raises ForeignCluster: when another cluster has come in its place
        """
        try:
            for reflector in self._reflectors:
                reflector.start()
            while not self._is_over():
                self._listen()
                self._flush_if_due()
        finally:
            for reflector in self._reflectors:
                reflector.stop()
        self._drain()
        self._flush(is_last=True)

    def _is_over(self) -> bool:
        over_s = time.monotonic() - self._until
        self._deaf_since = (self._deaf_since or time.monotonic()) if self._deltas.is_deaf else None
        if self._deaf_since is not None and time.monotonic() - self._deaf_since >= DEAF_S:
            return True
        is_listing = any(cursor.is_worth_waiting_for for cursor in self._deltas.cursors.values())
        return self._stop.is_set() or over_s >= (LIST_S if is_listing else 0)

    def _reflector(self, name: str, connection: Connection) -> Reflector:
        kind, cursors = KINDS[name], self._deltas.cursors
        return Reflector(
            kind,
            connection,
            self._incoming,
            resource_version=cursors[name].resource_version,
            locate=lambda: kind.located(self._deltas.scope),
            may_begin=lambda: all(cursors[other].may_be_built_on for other in kind.after),
            make_sure=self._make_sure,
            until=self._until,
        )

    def _listen(self) -> None:
        """Wait for the next thing to do: something heard, or a flush that is due."""
        moments = [self._tick_at, time.monotonic() + LOOK_UP_S]
        if self._until > time.monotonic():
            moments.append(self._until)
        if self._deltas.has_news:
            moments.append(self._flush_from)
        wait_s = min(moments) - time.monotonic()
        try:
            delta = self._incoming.get(timeout=wait_s) if wait_s > 0 else self._incoming.get_nowait()
        except Empty:
            return
        self._absorb(delta)
        self._drain()

    def _absorb(self, delta: Delta) -> None:
        had = self._deltas.size
        self._deltas.absorb(delta, now=self._clock())
        if isinstance(delta, Changed) and self._deltas.size > had:
            self._waiting_since = min(delta.at, self._waiting_since or delta.at)

    def _drain(self) -> None:
        """Take what is already there, so that a burst becomes one flush."""
        while self._deltas.size < FULL:
            try:
                delta = self._incoming.get_nowait()
            except Empty:
                return
            self._absorb(delta)

    def _flush_if_due(self) -> None:
        now = time.monotonic()
        is_tick = now >= self._tick_at
        is_news = self._deltas.has_news and (now >= self._flush_from or self._deltas.size >= FULL)
        if not is_tick and not is_news:
            return
        self._flush()
        self._flush_from = now + FLUSH_EVERY_S
        self._tick_at = now + TICK_S

    def _flush(self, *, is_last: bool = False) -> None:
        self._flusher.flush(self._deltas, is_last=is_last, waiting_since=self._waiting_since)
        self._waiting_since = None
        give_back()
