"""The reflector of one kind, as in client-go: a thread that lists, then watches, and queues changes."""

import random
import threading
import time
from collections.abc import Callable
from queue import Full, Queue
from typing import Any

from fleet.models import BookmarkState
from fleet.observer.mirror.kinds import Kind
from fleet.observer.watches.deltas import Broke, Changed, Delta, Failed, ForeignCluster, ListBegun, ListPage, Opened
from kube.client.connection import Connection
from kube.client.discovery import NotServed, meaning_of_403, meaning_of_404, served
from kube.client.errors import (
    Absent,
    Backwards,
    ClusterError,
    Forbidden,
    Gone,
    Silent,
    TooManyRequests,
    Unreadable,
)
from kube.client.lists import PAGE, list_pages
from kube.client.watches import Watch
from kube.resources import Resource

LONGEST_WAIT_S = 5.0
SHORTEST_WATCH_S = 1.0  # minimum interval for a server that ends every watch at once
SHORTEST_ASKED_S = 30.0
TIMEOUT_S = 5.0  # delay until a waiting kind reports it
LONGEST_TIMEOUT_S = 30.0  # maximum wait for other kinds: a failing kind must not block another


class Reflector(threading.Thread):
    """Lists and watches one kind until it is stopped, or the kind is unavailable."""

    def __init__(
        self,
        kind: Kind,
        connection: Connection,
        deltas: "Queue[Delta]",
        *,
        resource_version: str,
        locate: Callable[[], Resource[Any]],
        may_begin: Callable[[], bool],
        make_sure: Callable[[], None],
        until: float,
    ) -> None:
        super().__init__(name=f"reflector {kind.name}", daemon=True)
        self.kind = kind
        self._connection = connection
        self._deltas = deltas
        self._version = resource_version
        self._locate = locate  # from other kinds' data
        self._may_begin = may_begin
        self._make_sure = make_sure  # that the same cluster still answers
        self._until = until  # monotonic: maximum duration of the watch
        self._stop_asked = threading.Event()
        self._resource: Resource[Any] | None = None  # None: not located yet
        self._watch: Watch[Any] | None = None
        self._has_looked = False
        self._failures = 0
        self._expired_lists = 0
        self._blocked_s = 0.0  # how long the writer blocked the last put

    def stop(self) -> None:
        self._stop_asked.set()
        if (watch := self._watch) is not None:
            watch.close()

    def run(self) -> None:
        try:
            while not self._stop_asked.is_set() and self._list_or_watch():
                pass
        except Exception as error:  # noqa: BLE001 - passed to the writer's thread, which raises it
            self._put(Broke(self.kind.name, error))

    def _list_or_watch(self) -> bool:
        """Runs one list or watch. False: nothing to read until the next lease."""
        if not self._version and not self._wait_for_others():
            return False
        try:
            if self._has_looked:
                self._make_sure()
            self._has_looked = True
            resource = self._located()
            if not self._version:
                self._list(resource)
            self._follow(resource)
        except ForeignCluster:
            raise
        except NotServed as absence:
            return self._end(BookmarkState.ABSENT, absence)
        except Absent:
            return self._heed_404(meaning_of_404(self._connection, self.kind.resource))
        except Forbidden as refusal:
            meaning = meaning_of_403(self._connection, self._resource or self.kind.resource, refusal)
            is_absent = isinstance(meaning, NotServed)
            return self._end(BookmarkState.ABSENT if is_absent else BookmarkState.FORBIDDEN, meaning)
        except ClusterError as error:
            return self._wait_after(error)
        return True

    def _heed_404(self, meaning: ClusterError) -> bool:
        if isinstance(meaning, NotServed):
            return self._end(BookmarkState.ABSENT, meaning)
        return self._wait_after(meaning)

    def _end(self, state: BookmarkState, reason: ClusterError) -> bool:
        """Reports that the kind cannot be read until the next lease."""
        self._put(Failed(self.kind.name, state, str(reason)))
        return False

    def _located(self) -> Resource[Any]:
        """Returns the resource at the served version; requested once per lease."""
        if self._resource is None:
            self._resource = served(self._connection, self._locate())
        return self._resource

    def _wait_for_others(self) -> bool:
        """Waits for kinds that this one depends on, up to a limit; their later changes cause a new list.

        False: stopped.
        """
        begun, has_answered = time.monotonic(), False
        while not self._may_begin():
            if self._stop_asked.wait(0.05):
                return False
            if not has_answered and time.monotonic() - begun > TIMEOUT_S:
                waits = f"Waits for the list of {' and '.join(self.kind.after)}."
                self._put(Failed(self.kind.name, BookmarkState.LISTING, waits))
                has_answered = True
            if time.monotonic() - begun > LONGEST_TIMEOUT_S:
                return True
        return True

    def _list(self, resource: Resource[Any]) -> None:
        """Lists the kind; a list that expired is repeated with bigger pages."""
        self._put(ListBegun(self.kind.name))
        version = ""
        limit = PAGE * 4 ** min(self._expired_lists, 2)
        try:
            for page in list_pages(self._connection, resource, limit=limit):
                version = page.resource_version
                self._put(ListPage(self.kind.name, page.items, version, page.is_last, page.unread))
                if self._stop_asked.is_set():
                    return
        except Gone as error:
            self._expired_lists += 1
            sentence = f"The list expired before its last page was read, {self._expired_lists} times now: {error}"
            raise Gone(sentence) from error
        self._expired_lists = 0
        self._version = version

    def _follow(self, resource: Resource[Any]) -> None:
        if self._stop_asked.is_set() or not self._version:
            return
        seconds = max(SHORTEST_ASKED_S, self._until - time.monotonic() + 5)
        begun = time.monotonic()
        watch = self._watch = Watch(self._connection, resource, self._version, seconds=seconds)
        if self._stop_asked.is_set():
            watch.close()
        self._put(Opened(self.kind.name))
        for change in watch:
            self._failures = 0
            self._version = change.resource_version or self._version
            last_seen_at = watch.received_at - self._blocked_s
            self._put(
                Changed(self.kind.name, change.object, change.is_removed, self._version, change.unread, last_seen_at),
            )
        if time.monotonic() - begun < SHORTEST_WATCH_S:
            self._stop_asked.wait(SHORTEST_WATCH_S)
        else:
            self._failures = 0

    def _wait_after(self, error: ClusterError) -> bool:
        """Waits after an error. A first error is normal: a restarting server, a closing proxy, an expired version."""
        self._failures += 1
        is_first = self._failures == 1
        if isinstance(error, Gone | Unreadable) or (isinstance(error, Backwards) and not is_first):
            self._version = ""  # a watch no longer has the missed changes
        if not is_first or isinstance(error, Silent):
            self._put(Failed(self.kind.name, BookmarkState.FAILING, str(error)))
        if is_first and isinstance(error, Gone):
            return True
        wait_s = min(LONGEST_WAIT_S, 0.25 * 2 ** min(self._failures, 10)) * random.uniform(0.7, 1.3)
        if isinstance(error, TooManyRequests):
            wait_s = max(wait_s, error.retry_after_s or 0)
        return not self._stop_asked.wait(wait_s)

    def _put(self, delta: Delta) -> None:
        """Queues a change, waiting for the writer; drops it after the end of the list-watch, as nothing was
        recorded."""
        begun = time.monotonic()
        while not self._stop_asked.is_set():
            try:
                self._deltas.put(delta, timeout=0.5)
            except Full:
                continue
            self._blocked_s = time.monotonic() - begun
            return
