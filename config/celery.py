"""The workers' engine. The schedule is code: fixed ticks that find what is due; the rows say what that is."""

import gc
import os
from typing import Any

from celery import Celery
from celery.signals import worker_init

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings.dev")

app = Celery("quarterdeck")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()

# A list is read into hundreds of thousands of small objects, hardly one of them in a cycle: to look through them at
# every 700th new one, as Python does by itself, took 13 % of the CPU time of the first list of 5,000 nodes.
NEW_OBJECTS, YOUNG, OLD = 50_000, 20, 50


@worker_init.connect
def collect_rarely(**_: Any) -> None:
    gc.freeze()
    gc.set_threshold(NEW_OBJECTS, YOUNG, OLD)


# `expires`: a tick nobody took in time is worth nothing, and a worker that comes back must not find a heap of them.
app.conf.beat_schedule = {
    "take up every cluster whose observer is gone": {
        "task": "fleet.tasks.sweep_observers",
        "schedule": 10.0,
        "options": {"queue": "default", "expires": 10.0},
    },
    "forget what is old": {
        "task": "fleet.tasks.tidy_up",
        "schedule": 3600.0,
        "options": {"queue": "default", "expires": 600.0},
    },
    "judge every cluster anew": {
        "task": "fleet.tasks.sweep_findings",
        "schedule": 10.0,
        "options": {"queue": "default", "expires": 10.0},
    },
    "read what crashed operands said last": {
        "task": "fleet.tasks.sweep_crash_logs",
        "schedule": 30.0,
        "options": {"queue": "default", "expires": 30.0},
    },
    "ask DCGM exporters who holds which GPU": {
        "task": "fleet.tasks.sweep_exporters",
        "schedule": 10.0,
        "options": {"queue": "default", "expires": 10.0},
    },
    "advance every plan that is due": {
        "task": "rollouts.tasks.sweep_plans",
        "schedule": 1.0,
        "options": {"queue": "default", "expires": 2.0},
    },
}
