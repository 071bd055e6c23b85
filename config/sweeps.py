"""What sweeps up after those who died: noted for a Prometheus, as a sweep that stopped is noticed by nobody else."""

from celery import Task
from celery.signals import task_success
from django.utils import timezone

from config.models import Sweep

# Each answers how much it found. Plans that are due are no leftover: how long one has been says its own metric.
SWEEPS = {
    "fleet.tasks.sweep_observers": "leases",  # of observers that are gone, offered to others
    "fleet.tasks.tidy_up": "rows",  # that are old
}


@task_success.connect
def note(sender: Task, result: int, **_: object) -> None:
    if what := SWEEPS.get(sender.name):
        Sweep.note(what, found=result, now=timezone.now())
