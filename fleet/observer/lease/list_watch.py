"""The list-watch of one cluster for one lease: one reflector per kind fills a queue; this thread is the only writer."""

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

FLUSH_EVERY_S = 0.15  # the first change is written at once; of 50 per second, eight share a transaction and a message
TICK_S = 10.0  # the lease is 30 s; last updates are written this often
LOOK_UP_S = 0.5  # delay until a stop is noticed
QUEUED = 32  # one entry may be a page of a list; limits the backlog of a slow writer
FULL = 4000  # rows per flush; leaves other writers a gap
DEAF_S = 10.0  # a list-watch without updates of any kind is closed after this time, since others wait for its thread
LIST_S = 900.0  # extra time beyond the lease for a list; an aborted list would never complete


class ListWatch:
    """The watches of a cluster, open until `until` (monotonic) or a stop."""

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
        """Prepares the watch. `make_sure` raises ForeignCluster when another cluster answers."""
        self._make_sure = make_sure
        self._deltas = deltas
        self._flusher = flusher
        self._clock = clock
        self._stop = stop
        self._until = until
        self._incoming: Queue[Delta] = Queue(maxsize=QUEUED)
        self._flush_from = 0.0
        self._waiting_since: float | None = None  # receive time of the oldest unwritten change
        self._tick_at = time.monotonic() + TICK_S
        self._deaf_since: float | None = None
        self._reflectors = [self._reflector(name, connection) for name in deltas.cursors]

    def hold(self) -> None:
        """Runs until the end.

        :raises LostLease: when another worker took the lease
        :raises ForeignCluster: when another cluster answers at the address
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
            may_begin=lambda: all(cursors[other].allows_dependents for other in kind.after),
            make_sure=self._make_sure,
            until=self._until,
        )

    def _listen(self) -> None:
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
        """Takes queued changes, so that a burst becomes one flush."""
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
