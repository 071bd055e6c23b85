"""The reader of one kind: a thread that lists, then watches, and hands on what it hears. It writes nothing."""

import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from queue import Full, Queue
from typing import Any

from fleet.kube.client import Connection
from fleet.kube.errors import Absent, ClusterError, Forbidden, Gone, TooManyRequests
from fleet.kube.listing import list_pages
from fleet.kube.structs import Seen
from fleet.kube.watching import Watch
from fleet.models import BookmarkState
from fleet.observe.kinds import Kind

LONGEST_WAIT_S = 5.0
SHORTEST_WATCH_S = 1.0  # a server that ends every watch at once is not asked again at once


@dataclass(frozen=True)
class ListBegun:
    kind: str


@dataclass(frozen=True)
class ListPage:
    kind: str
    items: tuple[Seen, ...]
    resource_version: str
    is_last: bool


@dataclass(frozen=True)
class Opened:
    """The server took up the watch from where we stood: what our rows say holds."""

    kind: str


@dataclass(frozen=True)
class Heard:
    kind: str
    object: Seen | None  # None: a bookmark
    is_gone: bool
    resource_version: str


@dataclass(frozen=True)
class Failed:
    kind: str
    state: BookmarkState
    message: str


@dataclass(frozen=True)
class Broke:
    """A bug of ours: the window ends with it instead of going on without a kind."""

    kind: str
    error: Exception


Told = ListBegun | ListPage | Opened | Heard | Failed | Broke


class Reader(threading.Thread):
    """Reads one kind until it is told to stop, or the kind turns out not to be there for us."""

    def __init__(
        self,
        kind: Kind,
        connection: Connection,
        told: "Queue[Told]",
        *,
        resource_version: str,
        may_begin: Callable[[], bool],
        until: float,
    ) -> None:
        super().__init__(name=f"reader {kind.name}", daemon=True)
        self.kind = kind
        self._connection = connection
        self._told = told
        self._version = resource_version
        self._may_begin = may_begin
        self._until = until  # monotonic: the server need not keep the watch for longer
        self._stop_asked = threading.Event()
        self._watch: Watch[Any] | None = None
        self._failures = 0

    def stop(self) -> None:
        self._stop_asked.set()
        if (watch := self._watch) is not None:
            watch.close()

    def run(self) -> None:
        try:
            while not self._stop_asked.is_set() and self._look():
                pass
        except Exception as error:  # noqa: BLE001 - handed to the window's thread, which raises it
            self._tell(Broke(self.kind.name, error))

    def _look(self) -> bool:
        """One list or watch. False: there is nothing to look at for us before the next turn."""
        if not self._may_begin():
            return not self._stop_asked.wait(0.05)
        try:
            if not self._version:
                self._list()
            self._follow()
        except Gone:
            self._version = ""
        except (Forbidden, Absent) as refusal:
            state = BookmarkState.FORBIDDEN if isinstance(refusal, Forbidden) else BookmarkState.ABSENT
            self._tell(Failed(self.kind.name, state, str(refusal)))
            return False
        except ClusterError as error:
            return self._wait_after(error)
        return True

    def _list(self) -> None:
        self._tell(ListBegun(self.kind.name))
        version = ""
        for page in list_pages(self._connection, self.kind.resource):
            version = page.resource_version
            self._tell(ListPage(self.kind.name, page.items, version, page.is_last))
            if self._stop_asked.is_set():
                return
        self._version = version

    def _follow(self) -> None:
        if self._stop_asked.is_set() or not self._version:
            return
        seconds = max(1.0, self._until - time.monotonic()) + 5
        begun = time.monotonic()
        self._watch = Watch(self._connection, self.kind.resource, self._version, seconds=seconds)
        if self._stop_asked.is_set():
            self._watch.close()
        self._failures = 0
        self._tell(Opened(self.kind.name))
        for change in self._watch:
            self._version = change.resource_version or self._version
            self._tell(Heard(self.kind.name, change.object, change.is_gone, self._version))
        if time.monotonic() - begun < SHORTEST_WATCH_S:
            self._stop_asked.wait(SHORTEST_WATCH_S)

    def _wait_after(self, error: ClusterError) -> bool:
        self._failures += 1
        if self._failures > 1:  # once is an ordinary thing: a server restarts, a proxy closes
            self._tell(Failed(self.kind.name, BookmarkState.FAILING, str(error)))
        wait_s = min(LONGEST_WAIT_S, 0.25 * 2**self._failures) * random.uniform(0.7, 1.3)
        if isinstance(error, TooManyRequests):
            wait_s = max(wait_s, error.retry_after_s or 0)
        return not self._stop_asked.wait(wait_s)

    def _tell(self, told: Told) -> None:
        """Wait while the writer is busy; drop it when the window is over, since nothing was noted of it."""
        while not self._stop_asked.is_set():
            try:
                return self._told.put(told, timeout=0.5)
            except Full:
                continue
        return None
