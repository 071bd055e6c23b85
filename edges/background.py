"""A background thread for messages that no caller waits for.

A message that cannot be sent is dropped and logged. Rows say what is due, so a lost message costs only time.
"""

import atexit
import os
import threading
from collections.abc import Callable
from queue import Full, Queue

import structlog

GOODBYE_S = 1.0  # how long a command that ends waits for its messages

log = structlog.get_logger(__name__)
BackgroundQueue = Queue[tuple[Callable[[], object], dict[str, object]]]


class Background:
    """One sending thread per process, started with the first message."""

    def __init__(self, name: str, *, most_waiting: int) -> None:
        self.name = name
        self._most_waiting = most_waiting
        self._lock = threading.Lock()
        self._pid = 0
        self._waiting: BackgroundQueue = Queue()

    def send(self, act: Callable[[], object], **about: object) -> None:
        """Queues `act` without waiting; never fails. `about` goes into the log if the message is lost."""
        try:
            self._queue().put_nowait((act, about))
        except Full:
            log.warning("not sent", by=self.name, reason="too many tasks already wait", **about)

    def _queue(self) -> BackgroundQueue:
        """Returns the queue; creates queue and thread again after a fork, since threads do not survive one."""
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
            except Exception as error:  # noqa: BLE001 - no caller waits for the result; the log reports it
                log.warning("not sent", by=self.name, reason=f"{type(error).__name__}: {error}", **about)

    def _say_goodbye(self, pid: int) -> None:
        if pid == os.getpid():
            is_done = threading.Event()
            self.send(is_done.set)
            is_done.wait(GOODBYE_S)
