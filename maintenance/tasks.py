from celery import shared_task
from django.utils import timezone

from maintenance.automatic_round import run_automatic_quarantine
from maintenance.case_round import follow_cases


@shared_task(queue="rollouts", ignore_result=True)
def sweep_automatic_quarantine(**_: object) -> None:
    """Decides about new findings. It ignores unknown arguments, so that old and new workers can mix."""
    run_automatic_quarantine(now=timezone.now())


@shared_task(queue="rollouts", ignore_result=True)
def sweep_cases(**_: object) -> None:
    """Moves cases after their operations. It ignores unknown arguments, so that old and new workers can mix."""
    follow_cases(now=timezone.now())
