"""Records of sweeps for Prometheus: only a metric shows that a sweep stopped."""

from celery import Task
from celery.signals import task_success
from django.utils import timezone

from config.models import Sweep

# Each task returns its number of items. Due plans are not leftovers; another metric shows their wait.
SWEEPS = {
    "fleet.tasks.sweep_observers": "leases",  # of crashed observers, offered to others
    "fleet.tasks.tidy_up": "rows",  # that are old
    "people.tasks.verify_audit": "audit",  # entries that were altered
}


@task_success.connect
def record_sweep(sender: Task, result: int, **_: object) -> None:
    if what := SWEEPS.get(sender.name):
        Sweep.note(what, found=result, now=timezone.now())
