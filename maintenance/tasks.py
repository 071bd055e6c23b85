import os
import socket
import threading

from celery import shared_task
from django.utils import timezone

from maintenance.automatic_round import run_automatic_quarantine
from maintenance.case_round import follow_cases
from maintenance.chosen_round import run_chosen_steps
from maintenance.models import Repair
from maintenance.new_node_round import run_new_nodes
from maintenance.repair_kinds import discover, queue_discoveries
from maintenance.repair_logs import collect_logs_for_people
from maintenance.repair_round import run_repair as run_round
from maintenance.step_round import run_automatic_steps


@shared_task(queue="rollouts", ignore_result=True)
def sweep_automatic_quarantine(**_: object) -> None:
    """Decides about new findings, and starts automatic steps. It ignores unknown arguments: old and new workers mix."""
    run_automatic_quarantine(now=timezone.now())
    run_automatic_steps(now=timezone.now())


@shared_task(queue="rollouts", ignore_result=True)
def sweep_new_nodes(**_: object) -> None:
    """Holds nodes that joined, and takes the next step of those that are held."""
    run_new_nodes(now=timezone.now())


@shared_task(queue="rollouts", ignore_result=True)
def sweep_cases(**_: object) -> None:
    """Moves cases after their operations, and starts rounds of due repairs, log bundles and chosen steps."""
    follow_cases(now=timezone.now())
    queue_discoveries(now=timezone.now())
    for key in Repair.objects.due(now=timezone.now()).values_list("pk", flat=True):
        Repair.queue_round(key)
    collect_logs_for_people(now=timezone.now())
    run_chosen_steps(now=timezone.now())  # last: it reads much about each choice


@shared_task(queue="rollouts", ignore_result=True)
def discover_repair_kinds(*, cluster_id: int, **_: object) -> None:
    """Looks for the kinds of actors in a cluster. It ignores unknown arguments, so that versions can mix."""
    discover(cluster_id, now=timezone.now())


@shared_task(queue="rollouts", ignore_result=True)
def run_repair(*, key: int, **_: object) -> None:
    """Runs one round of a repair. It ignores unknown arguments, so that old and new workers can mix."""
    owner = f"{socket.gethostname()}:{os.getpid()}:{threading.get_ident()}"[:100]
    run_round(key, owner=owner, clock=timezone.now)
