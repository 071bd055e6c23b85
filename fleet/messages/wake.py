"""The queue of Celery tasks; the only module that queues.

A message is a nudge: rows say what is due, and beat finds it if the nudge is lost. So a dead or frozen broker never
fails, delays or undoes a commit. One thread per process sends, and drops what it cannot send.
"""

import threading
import time
from datetime import timedelta
from typing import Any

from celery import current_app
from django.db import transaction

from edges.background import Background

NEXT_LEASE_EXPIRES_S = 30.0
TIMED_AT_MOST = timedelta(seconds=10)
EXPIRES_S = 10.0  # later tasks are left to the next sweep
WAITING_AT_MOST = 1000


def wake_observer(cluster_id: int, epoch: int) -> None:
    """Offers the lease after `epoch` to a free worker."""
    queue(
        "fleet.tasks.observe",
        queue="observe",
        kwargs={"cluster_id": cluster_id, "epoch": epoch},
        expires=NEXT_LEASE_EXPIRES_S,
    )


def wake_observer_after(wait: timedelta, cluster_id: int, epoch: int) -> None:
    """Offers the lease after a short wait by a timer; longer waits are left to beat's sweep."""
    if wait > TIMED_AT_MOST:
        return
    nudge = _Nudge("fleet.tasks.observe", "observe", {"cluster_id": cluster_id, "epoch": epoch}, NEXT_LEASE_EXPIRES_S)
    # Sent without a query: the timer's thread would open a connection and never return it.
    later = threading.Timer(wait.total_seconds(), nudge.hand_over)
    later.daemon = True
    later.start()


def queue(task_name: str, *, queue: str, kwargs: dict[str, Any], expires: float) -> None:
    """Queues a task by name after the commit; at once outside of a transaction."""
    transaction.on_commit(lambda: _Nudge(task_name, queue, kwargs, expires).hand_over(), robust=True)


class _Nudge:
    def __init__(self, task_name: str, queue_name: str, kwargs: dict[str, Any], expires: float) -> None:
        self.task_name = task_name
        self.queue_name = queue_name
        self.kwargs = kwargs
        self.expires_at = time.monotonic() + expires

    def hand_over(self) -> None:
        _nudges.send(self._send, task=self.task_name)

    def _send(self) -> None:
        left_s = self.expires_at - time.monotonic()
        if left_s <= 0:
            return  # the rows were processed meanwhile
        current_app.send_task(
            self.task_name,
            kwargs=self.kwargs,
            queue=self.queue_name,
            expires=left_s,
            retry=False,
            ignore_result=True,
        )


class Coalesced:
    """A nudge after every flush, coalesced: a few are sent, one of them after the last change of a burst.

    Its task takes the key of a cluster.
    """

    def __init__(self, task_name: str, queue_name: str, *, at_most_every_s: float) -> None:
        self.task_name = task_name
        self.queue_name = queue_name
        self.at_most_every_s = at_most_every_s
        self.sent: dict[int, float] = {}
        self.owed: set[int] = set()

    def ask(self, cluster_id: int) -> None:
        with _lock:
            if cluster_id in self.owed:
                return
            wait_s = self.sent.get(cluster_id, 0.0) + self.at_most_every_s - time.monotonic()
            if wait_s > 0:
                self.owed.add(cluster_id)
        if wait_s > 0:
            later = threading.Timer(wait_s, self.send, [cluster_id])
            later.daemon = True
            later.start()
        else:
            transaction.on_commit(lambda: self.send(cluster_id), robust=True)

    def send(self, cluster_id: int) -> None:
        """Sends without a query: the timer's thread would open a connection and never return it."""
        with _lock:
            self.owed.discard(cluster_id)
            self.sent[cluster_id] = time.monotonic()
        _Nudge(self.task_name, self.queue_name, {"cluster_id": cluster_id}, EXPIRES_S).hand_over()


_lock = threading.Lock()
_nudges = Background("nudges", most_waiting=WAITING_AT_MOST)
