from celery import shared_task
from django.utils import timezone

from fleet import retention
from fleet.observer.lease import shutdown, worker_reports  # noqa: F401 (importing them connects Celery's signals)
from fleet.observer.lease.sweep import sweep
from fleet.observer.lease.watch_lease import take_lease


@shared_task(queue="observe", ignore_result=True)
def observe(*, cluster_id: int, epoch: int, **_: object) -> None:
    """Takes a watch lease. Accepts unknown arguments, so that old and new workers mix."""
    take_lease(cluster_id, epoch)


@shared_task(queue="default", ignore_result=True)
def sweep_observers(**_: object) -> int:
    return sweep(now=timezone.now())


@shared_task(queue="default", ignore_result=True)
def tidy_up(**_: object) -> int:
    return retention.tidy(now=timezone.now())
