import structlog
from celery import shared_task
from django.utils import timezone

from fleet.models import Cluster, Pod
from fleet.observer.lease import shutdown
from health import wake
from health.evaluation import overdue_clusters
from health.evaluation.evaluation_round import evaluate_cluster
from health.exporters import exporter_round
from health.inbox import orphaned_findings, rule_mutes, source_trials
from health.logs import crashes, requested_logs
from health.models import TelemetrySource, TelemetryTrial
from health.sources import hours
from health.sources import source_round as telemetry
from health.sources.snapshots import SnapshotsUnavailable

log = structlog.get_logger(__name__)


@shared_task(queue="default", ignore_result=True)
def sweep_findings(**_: object) -> None:
    for cluster_id in overdue_clusters.due(now=timezone.now()):
        wake.wake_findings_of(cluster_id)


@shared_task(queue="default", ignore_result=True)
def look_for_findings(*, cluster_id: int, **_: object) -> None:
    cluster = Cluster.objects.filter(pk=cluster_id).first()
    if cluster is not None:
        now = timezone.now()
        evaluate_cluster(cluster, now=now)
        rule_mutes.go_on(cluster, now=now)
        orphaned_findings.go_on(cluster, now=now)
        try:
            overdue_clusters.record_evaluation(cluster_id, now=now)
            hours.write_over(cluster_id, now=now)
        except SnapshotsUnavailable as error:  # the evaluation is done; the next sweep repeats it
            log.warning(
                "the answers of sources are not stored: Redis does not answer",
                cluster=cluster.name,
                reason=str(error),
            )


@shared_task(queue="default", ignore_result=True)
def sweep_crash_logs(**_: object) -> None:
    for cluster_id in Cluster.objects.values_list("pk", flat=True):
        wake.wake_crash_logs_of(cluster_id)


@shared_task(queue="default", ignore_result=True)
def read_crash_logs(*, cluster_id: int, **_: object) -> None:
    cluster = Cluster.objects.filter(pk=cluster_id).first()
    if cluster is not None:
        crashes.read_due_logs(cluster, clock=timezone.now)


@shared_task(queue="default", ignore_result=True)
def read_pod_log(*, pod_id: int, user_id: int, **_: object) -> None:
    pod = Pod.objects.select_related("cluster").filter(pk=pod_id).first()
    if pod is not None:
        try:
            requested_logs.read_requested_log(pod, user_id)
        except SnapshotsUnavailable as error:  # the person asks again
            log.warning("a log that was asked for is not read: Redis is away", reason=str(error))


@shared_task(queue="default", ignore_result=True)
def sweep_exporters(**_: object) -> None:
    for cluster_id in Cluster.objects.values_list("pk", flat=True):
        wake.wake_exporters_of(cluster_id)


@shared_task(queue="default", ignore_result=True)
def ask_exporters(*, cluster_id: int, **_: object) -> None:
    cluster = Cluster.objects.filter(pk=cluster_id).first()
    if cluster is not None and exporter_round.ask(cluster, clock=timezone.now, stop=shutdown.asked) is not None:
        orphaned_findings.resolve_gone(cluster, now=timezone.now())
        wake.findings_soon.ask(cluster_id)


@shared_task(queue="default", ignore_result=True)
def sweep_telemetry(**_: object) -> None:
    for cluster_id in TelemetrySource.objects.due(now=timezone.now()):
        wake.wake_telemetry_of(cluster_id)
    for trial_id in TelemetryTrial.objects.waiting(now=timezone.now()):
        wake.wake_telemetry_trial(trial_id)


@shared_task(queue="default", ignore_result=True)
def try_telemetry(*, trial_id: int, **_: object) -> None:
    source_trials.run_trial(trial_id, clock=timezone.now)


@shared_task(queue="default", ignore_result=True)
def ask_telemetry(*, cluster_id: int, **_: object) -> None:
    if telemetry.ask(cluster_id, clock=timezone.now) is not None:
        wake.findings_soon.ask(cluster_id)
