"""The stop of list-watches at the worker's shutdown: a thread pool waits for its tasks."""

from threading import Event
from typing import Any

from celery.signals import worker_shutting_down

asked = Event()


@worker_shutting_down.connect
def ask(**_: Any) -> None:
    asked.set()
