from celery import shared_task
from django.utils import timezone

from notifications.models import Channel, Router
from notifications.models.router import KEY
from notifications.rounds.channel_round import run_channel
from notifications.rounds.router_round import run_router
from rollouts.tasks import ROUNDS, owner, queue_due

ROUNDS |= {Channel: run_channel, Router: run_router}


@shared_task(queue="default", ignore_result=True)
def route_events(**_: object) -> None:
    """Routes what waits in the outbox. It accepts the key of the cluster that has something new."""
    run_router(KEY, owner=owner(), clock=timezone.now)


@shared_task(queue="default", ignore_result=True)
def sweep_deliveries(**_: object) -> None:
    """Queues the router and every channel that is due, so that a lost message or a killed worker costs little."""
    Router.the_one(now=timezone.now())
    queue_due(Router)
    queue_due(Channel)
