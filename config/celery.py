"""The workers' engine. The schedule is code: fixed ticks that find what is due; the rows say what that is."""

import os
from typing import Any

from celery import Celery
from celery.signals import worker_init

from config.faults import say_where
from config.garbage import collect_rarely

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings.dev")
say_where()  # whatever is of ours imports this: web, workers, beat and commands

app = Celery("quarterdeck")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


@worker_init.connect
def spare_the_collector(**_: Any) -> None:
    collect_rarely()


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
        "task": "health.tasks.sweep_findings",
        "schedule": 10.0,
        "options": {"queue": "default", "expires": 10.0},
    },
    "read what crashed operands said last": {
        "task": "health.tasks.sweep_crash_logs",
        "schedule": 30.0,
        "options": {"queue": "default", "expires": 30.0},
    },
    "ask DCGM exporters who holds which GPU": {
        "task": "health.tasks.sweep_exporters",
        "schedule": 10.0,
        "options": {"queue": "default", "expires": 10.0},
    },
    "ask for the telemetry of GPUs": {
        "task": "health.tasks.sweep_telemetry",
        "schedule": 5.0,
        "options": {"queue": "default", "expires": 5.0},
    },
    "look at every image pull that is due": {
        "task": "rollouts.tasks.sweep_image_pulls",
        "schedule": 2.0,
        "options": {"queue": "default", "expires": 2.0},
    },
    "advance every plan that is due": {
        "task": "rollouts.tasks.sweep_plans",
        "schedule": 1.0,
        "options": {"queue": "default", "expires": 2.0},
    },
}
