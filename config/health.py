"""Health endpoints: liveness, readiness, and separately whether every cluster is watched."""

from collections.abc import Callable
from datetime import datetime, timedelta
from threading import Event

import redis
from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.utils import timezone

from config.models import WriteProbe
from config.outages import FULL, full_disk, outage_of
from config.version import VERSION
from edges.locks import sqlite_waits, wait_for_locks
from fleet.freshness.threads import threads
from fleet.models import Cluster
from notifications.models import Channel
from wording.numbers import are, count

TIMEOUT_S = 1.0
PROBE_WAIT = timedelta(seconds=TIMEOUT_S)
_migrated = Event()  # set once; migrations come with the code, so none can become missing later


@login_not_required
def healthz(_: HttpRequest) -> HttpResponse:
    """Answers without any dependency: a database outage is no reason to restart this process."""
    return JsonResponse({"status": "alive", "version": VERSION})


@login_not_required
def readyz(_: HttpRequest) -> HttpResponse:
    """Answers a load balancer. Unwatched clusters are reported but do not count: other web processes have the same
    problem."""
    needed = {name: check() for name, check in NEEDED.items()}
    return _answer(
        is_ready=not any(needed.values()), troubles=needed | {name: check() for name, check in REPORTED.items()}
    )


@login_not_required
def readyz_of(_: HttpRequest, part: str) -> HttpResponse:
    check = (NEEDED | REPORTED).get(part)
    if check is None:
        raise Http404
    trouble = check()
    return _answer(is_ready=not trouble, troubles={part: trouble})


def _answer(*, is_ready: bool, troubles: dict[str, str]) -> HttpResponse:
    body = {
        "status": "ready" if is_ready else "not ready",
        **{name: trouble or "ok" for name, trouble in troubles.items()},
    }
    return JsonResponse(body, status=200 if is_ready else 503)


def database_trouble() -> str:
    """Checks for an answer and a write: a full disk or a standby still answers reads."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
        _probe.write(now=timezone.now())
    except DatabaseError as error:
        return _no_database(error)
    return FULL.detail if full_disk.is_recent else ""


def migrations_trouble() -> str:
    """Checks for missing migrations: the code would fail at the first missing column."""
    if _migrated.is_set():
        return ""
    try:
        missing = _missing_migrations()
    except DatabaseError as error:
        return _no_database(error)
    if not missing:
        _migrated.set()
        return ""
    return f"{missing} of this version's migrations {are(missing)} not applied: run `bin/manage migrate`."


def redis_trouble() -> str:
    """Checks Redis. Omits the address, which may contain a password."""
    try:
        with redis.Redis.from_url(
            settings.REDIS_URL, socket_connect_timeout=TIMEOUT_S, socket_timeout=TIMEOUT_S
        ) as client:
            client.ping()
    except (redis.RedisError, OSError, ValueError) as error:
        return f"Redis does not answer ({type(error).__name__}). Pages are not live, and no task is queued."
    return ""


def observing_trouble() -> str:
    """Counts clusters that should be watched but are not. Omits their names, since the caller is not signed in."""
    now = timezone.now()
    try:
        number = Cluster.objects.unwatched(now=now).count()
        action = threads(now=now).action if number else ""
    except DatabaseError as error:
        return _no_database(error)
    return f"{count(number, 'cluster')} {are(number)} unwatched. {action}" if number else ""


def notification_trouble() -> str:
    """Counts channels that fail. Omits their names, since the caller is not signed in."""
    try:
        number = Channel.objects.shared().failing().count()
    except DatabaseError as error:
        return _no_database(error)
    return f"{count(number, 'notification channel')} {'fails' if number == 1 else 'fail'}." if number else ""


def _missing_migrations() -> int:
    executor = MigrationExecutor(connection)
    return len(executor.migration_plan(executor.loader.graph.leaf_nodes()))


def _no_database(error: DatabaseError) -> str:
    if outage := outage_of(error):
        return outage.detail
    return f"The database does not answer ({type(error).__name__})."


class _Probe:
    """A committed write, at most every few seconds, since callers are not signed in."""

    EVERY = timedelta(seconds=2)

    def __init__(self) -> None:
        self._wrote_at: datetime | None = None

    def write(self, *, now: datetime) -> None:
        """Writes one row.

        :raises DatabaseError: when the database refuses writes, or is locked for more than a second
        """
        if self._wrote_at is not None and timedelta(0) <= now - self._wrote_at < self.EVERY:
            return
        with wait_for_locks(PROBE_WAIT), sqlite_waits(PROBE_WAIT):
            WriteProbe.objects.update_or_create(pk=1, defaults={"at": now})
        self._wrote_at = now


_probe = _Probe()


NEEDED: dict[str, Callable[[], str]] = {
    "database": database_trouble,
    "migrations": migrations_trouble,
    "redis": redis_trouble,
}
REPORTED: dict[str, Callable[[], str]] = {"observing": observing_trouble, "notifications": notification_trouble}
