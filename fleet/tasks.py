from celery import shared_task
from django.utils import timezone

from fleet import crash_logs, findings, housekeeping, wake
from fleet.exporters import rounds
from fleet.models import Cluster
from fleet.observe.lease import reporting, shutdown  # noqa: F401 (a worker that is ready reports its slots)
from fleet.observe.lease.sweep import sweep
from fleet.observe.lease.watch_lease import take_lease


@shared_task(queue="observe", ignore_result=True)
def observe(*, cluster_id: int, epoch: int, **_: object) -> None:
    """Take the lease of watching a cluster. Accepts unknown arguments, so that old and new workers mix."""
    take_lease(cluster_id, epoch)


@shared_task(queue="default", ignore_result=True)
def sweep_observers(**_: object) -> None:
    sweep(now=timezone.now())


@shared_task(queue="default", ignore_result=True)
def sweep_findings(**_: object) -> None:
    for cluster_id in Cluster.objects.values_list("pk", flat=True):
        wake.wake_findings_of(cluster_id)


@shared_task(queue="default", ignore_result=True)
def tidy_up(**_: object) -> None:
    housekeeping.tidy(now=timezone.now())


@shared_task(queue="default", ignore_result=True)
def look_for_findings(*, cluster_id: int, **_: object) -> None:
    cluster = Cluster.objects.filter(pk=cluster_id).first()
    if cluster is not None:
        findings.look(cluster, now=timezone.now())


@shared_task(queue="default", ignore_result=True)
def sweep_crash_logs(**_: object) -> None:
    for cluster_id in Cluster.objects.values_list("pk", flat=True):
        wake.wake_crash_logs_of(cluster_id)


@shared_task(queue="default", ignore_result=True)
def read_crash_logs(*, cluster_id: int, **_: object) -> None:
    cluster = Cluster.objects.filter(pk=cluster_id).first()
    if cluster is not None:
        crash_logs.read(cluster, clock=timezone.now)


@shared_task(queue="default", ignore_result=True)
def sweep_exporters(**_: object) -> None:
    for cluster_id in Cluster.objects.values_list("pk", flat=True):
        wake.wake_exporters_of(cluster_id)


@shared_task(queue="default", ignore_result=True)
def ask_exporters(*, cluster_id: int, **_: object) -> None:
    cluster = Cluster.objects.filter(pk=cluster_id).first()
    if cluster is not None:
        rounds.ask(cluster, clock=timezone.now, stop=shutdown.asked)
