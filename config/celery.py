"""The workers' engine. The schedule is code: fixed ticks that find what is due; the rows say what that is."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from celery import Celery
from celery.signals import worker_init

from config.faults import say_where
from config.garbage import collect_rarely, look_rarely


def is_worker(words: Sequence[str]) -> bool:
    """Whether this is `celery … worker`, or `python -m celery … worker`."""
    return "celery" in Path(words[0]).parts[-2:] and "worker" in words[1:]


os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings.dev")
if is_worker(sys.argv):
    os.environ.setdefault("QUARTERDECK_PROCESS", "worker")
# Whatever is of ours imports this, and first: web, workers, beat and commands.
say_where()
look_rarely()

app = Celery("quarterdeck")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


@worker_init.connect
def spare_the_collector(**_: Any) -> None:
    collect_rarely()


def tick(task: str, *, every_s: float, expires_s: float | None = None, queue: str = "default") -> dict[str, Any]:
    """What nobody took in time is worth nothing, and a worker that comes back must not find a heap of ticks."""
    return {"task": task, "schedule": every_s, "options": {"queue": queue, "expires": expires_s or every_s}}


app.conf.beat_schedule = {
    "take up every cluster whose observer is gone": tick("fleet.tasks.sweep_observers", every_s=10.0),
    "forget what is old": tick("fleet.tasks.tidy_up", every_s=3600.0, expires_s=600.0),
    "judge every cluster anew": tick("health.tasks.sweep_findings", every_s=10.0),
    "read what crashed operands said last": tick("health.tasks.sweep_crash_logs", every_s=30.0),
    "ask DCGM exporters who holds which GPU": tick("health.tasks.sweep_exporters", every_s=10.0),
    "ask for the telemetry of GPUs": tick("health.tasks.sweep_telemetry", every_s=5.0),
    # On the queue of their rounds: behind one of telemetry, which takes seconds, a halt would wait.
    "advance every plan that is due": tick("rollouts.tasks.sweep_plans", every_s=1.0, expires_s=2.0, queue="rollouts"),
    "run every other round that is due": tick("rollouts.tasks.sweep_rounds", every_s=2.0, queue="rollouts"),
}
