"""Queue work. The only module that does.

A message is a nudge: the rows say what is due, and beat finds it if the nudge is lost. So a broker that is dead or
frozen never fails, delays or undoes what was committed: one thread a process sends, and drops what it cannot send.
"""

import atexit
import os
import threading
import time
from datetime import timedelta
from queue import Full, Queue
from typing import Any

import structlog
from celery import current_app
from django.db import transaction

NEXT_TURN_EXPIRES_S = 30.0
TIMED_AT_MOST = timedelta(seconds=10)
EXPIRES_S = 10.0  # what is not done before the next sweep is not worth doing
CRASH_LOGS_AT_MOST_EVERY_S = 5.0
WAITING_AT_MOST = 1000
GOODBYE_S = 1.0  # what a command that ends waits for its last nudge

log = structlog.get_logger(__name__)


def wake_observer(cluster_id: int, turn: int) -> None:
    """Offer the turn after `turn` to whichever worker is free."""
    queue(
        "fleet.tasks.observe",
        queue="observe",
        kwargs={"cluster_id": cluster_id, "turn": turn},
        expires=NEXT_TURN_EXPIRES_S,
    )


def wake_observer_after(wait: timedelta, cluster_id: int, turn: int) -> None:
    """A short wait is kept by a timer; of a longer one the row tells beat's sweep."""
    if wait > TIMED_AT_MOST:
        return
    nudge = _Nudge("fleet.tasks.observe", "observe", {"cluster_id": cluster_id, "turn": turn}, NEXT_TURN_EXPIRES_S)
    # Sent without a look at the database: the thread of a timer would take a connection and never give it back.
    later = threading.Timer(wait.total_seconds(), lambda: _sender().send(nudge))
    later.daemon = True
    later.start()


def wake_findings_of(cluster_id: int) -> None:
    """Judge a cluster anew."""
    queue("fleet.tasks.look_for_findings", queue="default", kwargs={"cluster_id": cluster_id}, expires=EXPIRES_S)


def wake_findings_soon(cluster_id: int) -> None:
    """Something changed that rules judge."""
    _findings.ask(cluster_id)


def wake_crash_logs_of(cluster_id: int) -> None:
    """An operand crashed: its last lines may tell why. Those that crash meanwhile are found by the next sweep."""
    with _lock:
        now = time.monotonic()
        if now - _crash_logs_woken.get(cluster_id, -CRASH_LOGS_AT_MOST_EVERY_S) < CRASH_LOGS_AT_MOST_EVERY_S:
            return
        _crash_logs_woken[cluster_id] = now
    queue("fleet.tasks.read_crash_logs", queue="default", kwargs={"cluster_id": cluster_id}, expires=30.0)


def wake_exporters_of(cluster_id: int) -> None:
    """Ask a cluster's exporters, if it is time. A row says that; a nudge too many finds it is not."""
    queue("fleet.tasks.ask_exporters", queue="default", kwargs={"cluster_id": cluster_id}, expires=EXPIRES_S)


def wake_plans_of(cluster_id: int) -> None:
    """Something changed in this cluster that its plans may wait for."""
    _plans.ask(cluster_id)


def queue(task_name: str, *, queue: str, kwargs: dict[str, Any], expires: float) -> None:
    """Queue a task by name once the transaction is committed; at once where there is none."""
    transaction.on_commit(lambda: _sender().send(_Nudge(task_name, queue, kwargs, expires)), robust=True)


class _Nudge:
    def __init__(self, task_name: str, queue_name: str, kwargs: dict[str, Any], expires: float) -> None:
        self.task_name = task_name
        self.queue_name = queue_name
        self.kwargs = kwargs
        self.expires_at = time.monotonic() + expires

    def send(self) -> None:
        left_s = self.expires_at - time.monotonic()
        if left_s <= 0:
            return  # the rows have been looked at since
        current_app.send_task(
            self.task_name,
            kwargs=self.kwargs,
            queue=self.queue_name,
            expires=left_s,
            retry=False,
            ignore_result=True,
        )


class _Coalesced:
    """A nudge that is asked for after every flush: a few are sent, one of them after the last change of a burst."""

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
        """Without a look at the database: the thread of a timer would take a connection and never give it back."""
        with _lock:
            self.owed.discard(cluster_id)
            self.sent[cluster_id] = time.monotonic()
        _sender().send(_Nudge(self.task_name, self.queue_name, {"cluster_id": cluster_id}, EXPIRES_S))


class _Sender:
    """The process's own thread that talks to the broker."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self._waiting: Queue[_Nudge] = Queue(maxsize=WAITING_AT_MOST)
        self._is_idle = threading.Event()
        self._is_idle.set()
        threading.Thread(target=self._send_all, name="nudges", daemon=True).start()
        atexit.register(self.say_goodbye)

    def send(self, nudge: _Nudge) -> None:
        self._is_idle.clear()
        try:
            self._waiting.put_nowait(nudge)
        except Full:
            log.warning("a nudge is dropped", task=nudge.task_name, because="too many wait already")

    def say_goodbye(self) -> None:
        if self.pid == os.getpid():
            self._is_idle.wait(GOODBYE_S)

    def _send_all(self) -> None:
        while True:
            nudge = self._waiting.get()
            try:
                nudge.send()
            except Exception as error:  # noqa: BLE001 - whatever a broker raises, beat will find the work
                log.warning("a nudge is lost", task=nudge.task_name, because=f"{type(error).__name__}: {error}")
            if self._waiting.empty():
                self._is_idle.set()


_lock = threading.Lock()
_current: _Sender | None = None
_plans = _Coalesced("rollouts.tasks.wake_plans_of", "rollouts", at_most_every_s=0.5)
_findings = _Coalesced("fleet.tasks.look_for_findings", "default", at_most_every_s=2.0)
_crash_logs_woken: dict[int, float] = {}


def _sender() -> _Sender:
    """Made on first use, and again in a process that was forked since: threads do not survive a fork."""
    global _current
    with _lock:
        if _current is None or _current.pid != os.getpid():
            _current = _Sender()
        return _current
