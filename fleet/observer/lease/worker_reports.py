"""Reports of an observing worker: how many clusters it can watch at once."""

import os
import socket
import threading
from collections.abc import Callable
from typing import Any

import structlog
from celery.signals import worker_ready
from django.db import DatabaseError, connection
from django.utils import timezone

from fleet.models import ObservingWorker
from fleet.observer.lease import shutdown

QUEUE = "observe"
EVERY_S = 10.0  # two reports may be lost before its threads stop counting

log = structlog.get_logger(__name__)


def own_name() -> str:
    return f"{socket.gethostname()}:{os.getpid()}"


@worker_ready.connect
def begin(sender: Any, **_: Any) -> None:
    if QUEUE in sender.app.amqp.queues.consume_from:
        start(lambda: sender.pool.num_processes)


def start(threads: Callable[[], int]) -> None:
    """Starts the reports in their own thread, since others watch clusters."""
    told = {"name": own_name(), "threads": threads}
    threading.Thread(target=report_until, args=[shutdown.asked], kwargs=told, name="threads", daemon=True).start()


def report_until(stop: threading.Event, *, name: str, threads: Callable[[], int]) -> None:
    while True:
        _try(lambda: ObservingWorker.report(name, threads=threads(), now=timezone.now()))
        if stop.wait(EVERY_S):
            break
    _try(lambda: ObservingWorker.leave(name))


def _try(write: Callable[[], None]) -> None:
    """Writes one report. A lost one is repeated by the next. Keeps no connection between two reports."""
    try:
        write()
    except DatabaseError as error:
        log.warning("the threads of this worker could not be told", reason=f"{type(error).__name__}: {error}")
    finally:
        if not connection.in_atomic_block:
            connection.close()
