"""A wait for a cluster's answer that ends when the worker stops: a blocked socket cannot be interrupted."""

import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from threading import Event
from typing import TypeVar

LOOK_UP_S = 0.1
T = TypeVar("T")


def patiently(ask: Callable[[], T], stop: Event) -> T | None:
    """Runs `ask` in its own thread and returns or raises its result. None: the stop came first."""
    answers: SimpleQueue[tuple[T | None, BaseException | None]] = SimpleQueue()

    def put() -> None:
        try:
            answers.put((ask(), None))
        except BaseException as error:  # noqa: BLE001 - raised again in the waiting thread
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
