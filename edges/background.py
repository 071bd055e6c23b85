"""Sends in the background what nobody waits for.

What cannot be sent is dropped, and the log says so: rows say what is due, and a page that misses a message asks again.
"""

import atexit
import os
import threading
from collections.abc import Callable
from queue import Full, Queue

import structlog

GOODBYE_S = 1.0  # what a command that ends waits for what it has handed over

log = structlog.get_logger(__name__)
BackgroundQueue = Queue[tuple[Callable[[], object], dict[str, object]]]


class Background:
    """One thread a process, started with the first thing to send."""

    def __init__(self, name: str, *, most_waiting: int) -> None:
        self.name = name
        self._most_waiting = most_waiting
        self._lock = threading.Lock()
        self._pid = 0
        self._waiting: BackgroundQueue = Queue()

    def send(self, act: Callable[[], object], **about: object) -> None:
        """Hand it over: this never fails and never waits. `about`: what the log says of one that is lost."""
        try:
            self._queue().put_nowait((act, about))
        except Full:
            log.warning("not sent", by=self.name, reason="too many wait already", **about)

    def _queue(self) -> BackgroundQueue:
        """Made anew in a process that was forked since: threads do not survive a fork."""
        with self._lock:
            if self._pid != os.getpid():
                self._pid = os.getpid()
                self._waiting = Queue(maxsize=self._most_waiting)
                threading.Thread(target=self._send_all, args=[self._waiting], name=self.name, daemon=True).start()
                atexit.register(self._say_goodbye, self._pid)
            return self._waiting

    def _send_all(self, waiting: BackgroundQueue) -> None:
        while True:
            act, about = waiting.get()
            try:
                act()
            except Exception as error:  # noqa: BLE001 - whatever it raises, nobody waits for this to say so
                log.warning("not sent", by=self.name, reason=f"{type(error).__name__}: {error}", **about)

    def _say_goodbye(self, pid: int) -> None:
        if pid == os.getpid():
            is_through = threading.Event()
            self.send(is_through.set)
            is_through.wait(GOODBYE_S)
