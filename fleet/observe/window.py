"""The window of one cluster for one turn: reader threads fill one queue, this thread is the only writer."""

import time
from collections.abc import Callable
from datetime import datetime
from queue import Empty, Queue
from threading import Event

from fleet.kube.client import Connection
from fleet.observe.flush import Flusher
from fleet.observe.gathering import Gathering
from fleet.observe.kinds import KINDS
from fleet.observe.readers import Reader, Told

FLUSH_EVERY_S = 0.25
TICK_S = 10.0  # the lease is 30 s, and what was heard is noted this often
LOOK_UP_S = 0.5  # how soon a stop is noticed
QUEUED = 32  # a page of a list is one: what a slow writer lets pile up must stay small
FULL = 500  # rows that are written without waiting for more


class Window:
    """Holds the watches of a cluster open until `until` (monotonic) or a stop."""

    def __init__(
        self,
        connection: Connection,
        gathering: Gathering,
        flusher: Flusher,
        *,
        clock: Callable[[], datetime],
        stop: Event,
        until: float,
    ) -> None:
        self._gathering = gathering
        self._flusher = flusher
        self._clock = clock
        self._stop = stop
        self._until = until
        self._told: Queue[Told] = Queue(maxsize=QUEUED)
        self._flush_from = 0.0
        self._tick_at = time.monotonic() + TICK_S
        self._readers = [self._reader(name, connection) for name in gathering.standings]

    def hold(self) -> None:
        """:raises LostTurn: when somebody else has the cluster by now"""
        try:
            for reader in self._readers:
                reader.start()
            while not self._stop.is_set() and time.monotonic() < self._until:
                self._listen()
                self._flush_if_due()
        finally:
            for reader in self._readers:
                reader.stop()
        self._drain()
        self._flusher.flush(self._gathering, is_last=True)

    def _reader(self, name: str, connection: Connection) -> Reader:
        kind, standings = KINDS[name], self._gathering.standings
        return Reader(
            kind,
            connection,
            self._told,
            resource_version=standings[name].resource_version,
            may_begin=lambda: all(standings[other].may_be_built_on for other in kind.after),
            until=self._until,
        )

    def _listen(self) -> None:
        """Wait for the next thing to do: something heard, or a flush that is due."""
        moments = [self._until, self._tick_at, time.monotonic() + LOOK_UP_S]
        if self._gathering.has_news:
            moments.append(self._flush_from)
        wait_s = min(moments) - time.monotonic()
        try:
            told = self._told.get(timeout=wait_s) if wait_s > 0 else self._told.get_nowait()
        except Empty:
            return
        self._gathering.absorb(told, now=self._clock())
        self._drain()

    def _drain(self) -> None:
        """Take what is already there, so that a burst becomes one flush."""
        while self._gathering.size < FULL:
            try:
                told = self._told.get_nowait()
            except Empty:
                return
            self._gathering.absorb(told, now=self._clock())

    def _flush_if_due(self) -> None:
        now = time.monotonic()
        is_tick = now >= self._tick_at
        is_news = self._gathering.has_news and (now >= self._flush_from or self._gathering.size >= FULL)
        if not is_tick and not is_news:
            return
        self._flusher.flush(self._gathering)
        self._flush_from = now + FLUSH_EVERY_S
        self._tick_at = now + TICK_S
