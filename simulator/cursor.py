"""One watch's place in a kind's log."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Protocol

from simulator.events import Change
from simulator.shelf import Matches, Shelf


class Clocked(Protocol):
    """What a cursor needs of the store: its lock, and the version it has reached."""

    version: int

    @property
    def lock(self) -> AbstractContextManager[Any]: ...


class Cursor:
    def __init__(
        self, store: Clocked, shelf: Shelf, matches: Matches | None, version: int, initial: list[Change]
    ) -> None:
        self._store = store
        self._shelf = shelf
        self._matches = matches
        self._initial = initial
        self.version = version
        """Everything up to here was read."""

    def read(self) -> list[Change]:
        """What happened since the last call, without waiting.

        :raises Refused: 410 when some of it is forgotten.
        """
        initial, self._initial = self._initial, []
        with self._store.lock:
            changes = self._shelf.log.after(self.version)
            self.version = max(self.version, self._store.version)
        if self._matches is None:
            return [*initial, *changes]
        return [*initial, *(seen for change in changes if (seen := change.seen_through(self._matches)))]

    def on_change(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call `listener`, under the store's lock, after each change; the answer ends it."""
        with self._store.lock:
            self._shelf.listeners.append(listener)

        def stop() -> None:
            with self._store.lock:
                if listener in self._shelf.listeners:
                    self._shelf.listeners.remove(listener)

        return stop
