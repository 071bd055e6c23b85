import os
import socket
import threading

from celery import shared_task
from django.utils import timezone

from fleet.messages import wake
from operations import operation_round
from operations.external_work import queue_looks, record_work
from operations.models import Operation
from operations.quarantine_round import follow_quarantines
from operations.steps import STEPS


@shared_task(queue="rollouts", ignore_result=True)
def run_operation(*, key: int, **_: object) -> None:
    """Runs one round of an operation. It accepts unknown arguments, so that old and new workers can run together."""
    owner = f"{socket.gethostname()}:{os.getpid()}:{threading.get_ident()}"[:100]
    operation_round.run_operation(key, owner=owner, clock=timezone.now)


@shared_task(queue="rollouts", ignore_result=True)
def clean_up_operation(*, key: int, **_: object) -> None:
    operation_round.clean_up_operation(key, clock=timezone.now)


@shared_task(queue="rollouts", ignore_result=True)
def sweep_quarantines(**_: object) -> None:
    """Follows quarantines whose cordon somebody else removed."""
    follow_quarantines(clock=timezone.now)


@shared_task(queue="rollouts", ignore_result=True)
def look_at_external_work(*, cluster_id: int, **_: object) -> None:
    """Reads what other controllers do in a cluster. It ignores unknown arguments, so that versions can mix."""
    record_work(cluster_id, now=timezone.now())


@shared_task(queue="rollouts", ignore_result=True)
def sweep_operations(**_: object) -> None:
    """Queues every due operation, so that a lost message or a crashed worker costs two seconds."""
    operation_round.end_gone_quarantines(now=timezone.now())
    queue_looks(now=timezone.now())
    for key in Operation.objects.due(now=timezone.now()).values_list("pk", flat=True):
        Operation.queue_round(key)
    for key in sorted({key for step in STEPS.values() for key in step.left_behind()}):
        wake.queue("operations.tasks.clean_up_operation", queue="rollouts", kwargs={"key": key}, expires=30)
