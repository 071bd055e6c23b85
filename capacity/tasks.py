import structlog
from celery import shared_task
from django.utils import timezone

from capacity.placements import service_level_history
from fleet.messages.wake import EXPIRES_S, queue
from health.sources.snapshots import SnapshotsUnavailable

log = structlog.get_logger(__name__)


@shared_task(queue="default", ignore_result=True)
def sweep_service_levels(**_: object) -> None:
    for cluster_id in service_level_history.due_clusters(now=timezone.now()):
        task = "capacity.tasks.measure_service_levels"
        queue(task, queue="default", kwargs={"cluster_id": cluster_id}, expires=EXPIRES_S)


@shared_task(queue="default", ignore_result=True)
def measure_service_levels(*, cluster_id: int, **_: object) -> None:
    try:
        service_level_history.measure_due(cluster_id, clock=timezone.now)
    except SnapshotsUnavailable as error:  # the next sweep repeats it
        log.warning("service levels are not measured: Redis is away", cluster=cluster_id, reason=str(error))
