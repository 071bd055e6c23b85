"""Nudges: evaluate a cluster, read crash logs, ask or try a telemetry source. A sweep makes up for a lost nudge."""

import threading
import time

from fleet.messages.wake import EXPIRES_S, Coalesced, queue

CRASH_LOGS_AT_MOST_EVERY_S = 5.0

findings_soon = Coalesced("health.tasks.look_for_findings", "default", at_most_every_s=2.0)


def wake_findings_of(cluster_id: int) -> None:
    queue("health.tasks.look_for_findings", queue="default", kwargs={"cluster_id": cluster_id}, expires=EXPIRES_S)


def wake_crash_logs_of(cluster_id: int) -> None:
    """An operand crashed: its last lines may tell why. Those that crash meanwhile are found by the next sweep."""
    with _lock:
        now = time.monotonic()
        if now - _crash_logs_woken.get(cluster_id, -CRASH_LOGS_AT_MOST_EVERY_S) < CRASH_LOGS_AT_MOST_EVERY_S:
            return
        _crash_logs_woken[cluster_id] = now
    queue("health.tasks.read_crash_logs", queue="default", kwargs={"cluster_id": cluster_id}, expires=30.0)


def wake_exporters_of(cluster_id: int) -> None:
    """Ask a cluster's exporters, if it is time. A row says that; a nudge too many finds it is not."""
    queue("health.tasks.ask_exporters", queue="default", kwargs={"cluster_id": cluster_id}, expires=EXPIRES_S)


def wake_telemetry_of(cluster_id: int) -> None:
    """Ask a cluster's source of telemetry, if it is time."""
    queue("health.tasks.ask_telemetry", queue="default", kwargs={"cluster_id": cluster_id}, expires=EXPIRES_S)


def wake_telemetry_trial(trial_id: int) -> None:
    """Try a source that nobody has saved, if no other worker has begun."""
    queue("health.tasks.try_telemetry", queue="default", kwargs={"trial_id": trial_id}, expires=EXPIRES_S)


_lock = threading.Lock()
_crash_logs_woken: dict[int, float] = {}
