import os
import socket
import threading

from celery import shared_task
from django.utils import timezone

from rollouts.commands.pending_commands import record_pending
from rollouts.engine.round import run_round
from rollouts.external_rollouts.external_rollout_round import run_followed, take_up
from rollouts.image_pulls.image_pull_round import run_pull
from rollouts.live_checks.live_check_round import run_live_check
from rollouts.models import FollowedRollout, ImagePull, LiveCheck, Plan
from rollouts.models.followed import queue_followed, wake_followed
from rollouts.models.image_pull import queue_pull
from rollouts.models.live_check import queue_live_check
from rollouts.models.plan import queue_round, wake_plans


def owner() -> str:
    return f"{socket.gethostname()}:{os.getpid()}:{threading.get_ident()}"[:100]


@shared_task(queue="rollouts", ignore_result=True)
def advance_plan(*, plan_id: int, **_: object) -> None:
    """Runs one round of a plan. It accepts unknown arguments, so that old and new workers can run together."""
    run_round(plan_id=plan_id, owner=owner(), clock=timezone.now)


@shared_task(queue="rollouts", ignore_result=True)
def sweep_plans(**_: object) -> None:
    """Queues every due plan, so that a lost message or a crashed worker costs a second."""
    for plan_id in Plan.objects.due(now=timezone.now()).values_list("pk", flat=True):
        queue_round(plan_id)
    record_pending(now=timezone.now())


@shared_task(queue="rollouts", ignore_result=True)
def advance_image_pull(*, pull_id: int, **_: object) -> None:
    """Runs one round of an image pull."""
    run_pull(pull_id=pull_id, owner=owner(), clock=timezone.now)


@shared_task(queue="rollouts", ignore_result=True)
def sweep_image_pulls(**_: object) -> None:
    for pull_id in ImagePull.objects.due(now=timezone.now()).values_list("pk", flat=True):
        queue_pull(pull_id)


@shared_task(queue="rollouts", ignore_result=True)
def look_at_followed(*, rollout_id: int, **_: object) -> None:
    """Runs one round of an external rollout."""
    run_followed(rollout_id=rollout_id, owner=owner(), clock=timezone.now)


@shared_task(queue="rollouts", ignore_result=True)
def sweep_followed(**_: object) -> None:
    """Creates missing rows of followed driver objects, and queues due rounds."""
    take_up(now=timezone.now())
    for rollout_id in FollowedRollout.objects.due(now=timezone.now()).values_list("pk", flat=True):
        queue_followed(rollout_id)


@shared_task(queue="rollouts", ignore_result=True)
def ask_live(*, check_id: int, **_: object) -> None:
    """Runs a live check, and starts the plan if that was requested."""
    run_live_check(check_id=check_id, owner=owner(), clock=timezone.now)


@shared_task(queue="rollouts", ignore_result=True)
def sweep_live_checks(**_: object) -> None:
    for check_id in LiveCheck.objects.due(now=timezone.now()).values_list("pk", flat=True):
        queue_live_check(check_id)


@shared_task(queue="rollouts", ignore_result=True)
def wake_plans_of(*, cluster_id: int, **_: object) -> None:
    """Makes the cluster's plans and external rollouts due after a change."""
    wake_plans(Plan.objects.filter(cluster=cluster_id), now=timezone.now())
    wake_followed(cluster_id, now=timezone.now())
