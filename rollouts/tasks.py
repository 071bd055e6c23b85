import os
import socket
import threading
from collections.abc import Callable
from datetime import datetime
from typing import Any

from celery import shared_task
from django.utils import timezone

from operations.models.leased import Leased
from rollouts.backtest.halt_review import review_halt
from rollouts.commands.image_pulls import cancel_obsolete_pulls
from rollouts.commands.pending_commands import record_pending
from rollouts.engine.round import run_round
from rollouts.external_rollouts.external_rollout_round import run_external_rollout, take_up
from rollouts.live_checks.live_check_round import run_live_check
from rollouts.models import ExternalRollout, LiveCheck, Plan, Rehearsal
from rollouts.models.external_rollout import wake_external_rollouts
from rollouts.models.plan import wake_plans
from rollouts.rehearsal.rehearsal_round import run_rehearsal


def owner() -> str:
    return f"{socket.gethostname()}:{os.getpid()}:{threading.get_ident()}"[:100]


def run_plan(key: int, *, owner: str, clock: Callable[[], datetime]) -> None:
    run_round(key, owner=owner, clock=clock)
    review_halt(key, now=clock())


# The function that runs a round of each leased row. Apps above add theirs.
ROUNDS: dict[type[Leased], Callable[..., None]] = {
    Plan: run_plan,
    LiveCheck: run_live_check,
    Rehearsal: run_rehearsal,
    ExternalRollout: run_external_rollout,
}


@shared_task(queue="rollouts", ignore_result=True)
def run_leased(*, model: str, key: int, **_: object) -> None:
    """Runs one round of a leased row, if this version has such rows.

    It accepts unknown models and arguments, so that old and new workers can run together.
    """
    for leased, run_round_of in ROUNDS.items():
        if leased.__name__ == model:
            run_round_of(key, owner=owner(), clock=timezone.now)


@shared_task(queue="rollouts", ignore_result=True)
def sweep_plans(**_: object) -> None:
    """Queues every due plan, so that a lost message or a crashed worker costs a second."""
    queue_due(Plan)
    record_pending(now=timezone.now())


@shared_task(queue="rollouts", ignore_result=True)
def sweep_rounds(**_: object) -> None:
    """Creates missing rows of followed driver objects, and queues every due round but those of plans.

    It also cancels image pulls without a purpose.
    """
    take_up(now=timezone.now())
    for model in ROUNDS:
        is_of_this_queue = model.queue_name == Leased.queue_name  # the sweep of another queue queues its own rounds
        if model is Rehearsal or (is_of_this_queue and model is not Plan):
            queue_due(model)
    cancel_obsolete_pulls(now=timezone.now())


def queue_due(model: Any) -> None:
    """Queues a round of each due row of a leased model."""
    for key in model.objects.due(now=timezone.now()).values_list("pk", flat=True):
        model.queue_round(key)


@shared_task(queue="rollouts", ignore_result=True)
def wake_plans_of(*, cluster_id: int, **_: object) -> None:
    wake_plans(Plan.objects.filter(cluster=cluster_id), now=timezone.now())
    wake_external_rollouts(cluster_id, now=timezone.now())
