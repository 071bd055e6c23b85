"""Wait for a cluster's answer, and no longer than until a worker is told to stop: a blocked socket cannot be asked."""

import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from threading import Event
from typing import TypeVar

LOOK_UP_S = 0.1
T = TypeVar("T")


def patiently(ask: Callable[[], T], stop: Event) -> T | None:
    """What `ask` returns or raises, asked in a thread of its own. None: the stop came first; nobody waits for it."""
    answers: SimpleQueue[tuple[T | None, BaseException | None]] = SimpleQueue()

    def put() -> None:
        try:
            answers.put((ask(), None))
        except BaseException as error:  # noqa: BLE001 - raised in the thread that waits for it
            answers.put((None, error))

    threading.Thread(target=put, name="first question", daemon=True).start()
    while not stop.is_set():
        try:
            answer, error = answers.get(timeout=LOOK_UP_S)
        except Empty:
            continue
        if error is not None:
            raise error
        return answer
    return None
