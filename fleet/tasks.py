from celery import shared_task
from django.utils import timezone

from fleet import housekeeping
from fleet.observe.lease import reporting, shutdown  # noqa: F401 (a worker that is ready reports its threads)
from fleet.observe.lease.sweep import sweep
from fleet.observe.lease.watch_lease import take_lease


@shared_task(queue="observe", ignore_result=True)
def observe(*, cluster_id: int, epoch: int, **_: object) -> None:
    """Take the lease of watching a cluster. Accepts unknown arguments, so that old and new workers mix."""
    take_lease(cluster_id, epoch)


@shared_task(queue="default", ignore_result=True)
def sweep_observers(**_: object) -> int:
    """How many leases were offered."""
    return sweep(now=timezone.now())


@shared_task(queue="default", ignore_result=True)
def tidy_up(**_: object) -> int:
    """How many rows went."""
    return housekeeping.tidy(now=timezone.now())
