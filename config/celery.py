"""The Celery app and its schedule: fixed ticks that look for due rows."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from celery import Celery
from celery.signals import worker_init

from config.faults import dump_stacks_on_crash
from config.garbage import freeze_collector, raise_thresholds


def is_worker(words: Sequence[str]) -> bool:
    """Tells whether this is `celery … worker`, or `python -m celery … worker`."""
    return "celery" in Path(words[0]).parts[-2:] and "worker" in words[1:]


os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings.dev")
if is_worker(sys.argv):
    os.environ.setdefault("QUARTERDECK_PROCESS", "worker")
# All our processes import this first: web, workers, beat and commands.
dump_stacks_on_crash()
raise_thresholds()

app = Celery("quarterdeck")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


@worker_init.connect
def spare_the_collector(**_: Any) -> None:
    freeze_collector()


def tick(task: str, *, every_s: float, expires_s: float | None = None, queue: str = "default") -> dict[str, Any]:
    """Returns a schedule entry. A tick expires, so that a returning worker finds no backlog."""
    return {"task": task, "schedule": every_s, "options": {"queue": queue, "expires": expires_s or every_s}}


app.conf.beat_schedule = {
    "take over clusters of crashed observers": tick("fleet.tasks.sweep_observers", every_s=10.0),
    "delete old rows": tick("fleet.tasks.tidy_up", every_s=3600.0, expires_s=600.0),
    "verify the audit chain": tick("people.tasks.verify_audit", every_s=21600.0, expires_s=3600.0),
    "evaluate the rules of every cluster": tick("health.tasks.sweep_findings", every_s=10.0),
    "read the logs of crashed operands": tick("health.tasks.sweep_crash_logs", every_s=30.0),
    "read GPU allocations from DCGM exporters": tick("health.tasks.sweep_exporters", every_s=10.0),
    "query GPU telemetry": tick("health.tasks.sweep_telemetry", every_s=5.0),
    "measure the service levels of pools": tick("capacity.tasks.sweep_service_levels", every_s=60.0),
    "send notifications that are due": tick("notifications.tasks.sweep_deliveries", every_s=2.0),
    # On the queue of their rounds: on another queue, a halt could wait behind a telemetry round of seconds.
    "advance every plan that is due": tick("rollouts.tasks.sweep_plans", every_s=1.0, expires_s=2.0, queue="rollouts"),
    "move cases after their operations": tick("maintenance.tasks.sweep_cases", every_s=5.0, queue="rollouts"),
    "decide about automatic quarantine": tick(
        "maintenance.tasks.sweep_automatic_quarantine", every_s=10.0, queue="rollouts"
    ),
    "hold new nodes": tick("maintenance.tasks.sweep_new_nodes", every_s=10.0, queue="rollouts"),
    "follow quarantines whose cordon is gone": tick(
        "operations.tasks.sweep_quarantines", every_s=10.0, queue="rollouts"
    ),
    "run every operation that is due": tick("operations.tasks.sweep_operations", every_s=2.0, queue="rollouts"),
    "run every other round that is due": tick("rollouts.tasks.sweep_rounds", every_s=2.0, queue="rollouts"),
}
