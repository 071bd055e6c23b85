"""When a worker is told to end, so are its list-watches: a thread pool waits for its tasks, whatever they wait for."""

from threading import Event
from typing import Any

from celery.signals import worker_shutting_down

asked = Event()


@worker_shutting_down.connect
def ask(**_: Any) -> None:
    asked.set()
