"""Whether this process lives, whether it can work, and what a Prometheus should know of it."""

from collections.abc import Callable

import redis
from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.db import DatabaseError, connection
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils import timezone

from fleet.models import Cluster

TIMEOUT_S = 1.0
NAMED = 3


@login_not_required
def healthz(_: HttpRequest) -> HttpResponse:
    """Asks nobody else: a database that is away is no reason to restart this process."""
    return JsonResponse({"status": "alive"})


@login_not_required
def readyz(_: HttpRequest) -> HttpResponse:
    parts = {name: check() for name, check in CHECKS.items()}
    is_ready = all(trouble == "" for trouble in parts.values())
    body = {"status": "ready" if is_ready else "not ready", **{name: said or "ok" for name, said in parts.items()}}
    return JsonResponse(body, status=200 if is_ready else 503)


def database_trouble() -> str:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except DatabaseError as error:
        return f"The database does not answer ({type(error).__name__})."
    return ""


def redis_trouble() -> str:
    """Never the address: it may carry a password."""
    try:
        with redis.Redis.from_url(
            settings.REDIS_URL, socket_connect_timeout=TIMEOUT_S, socket_timeout=TIMEOUT_S
        ) as client:
            client.ping()
    except (redis.RedisError, OSError, ValueError) as error:
        return f"Redis does not answer ({type(error).__name__}): pages are not live, and nothing is queued."
    return ""


def observers_trouble() -> str:
    """Clusters that nobody watches though it is their time: there are more of them than threads, or no worker."""
    try:
        names = [cluster.name for cluster in Cluster.objects.unwatched(now=timezone.now())]
    except DatabaseError as error:
        return f"The database does not answer ({type(error).__name__})."
    if not names:
        return ""
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return f"No worker watches {', '.join(names[:NAMED])}{more}: the queue “observe” needs a worker, or more threads."


CHECKS: dict[str, Callable[[], str]] = {
    "database": database_trouble,
    "redis": redis_trouble,
    "observers": observers_trouble,
}
