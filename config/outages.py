"""Database outages (unreachable, full, read-only, locked), classified by their error. Neither refusals nor bugs."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import Any

import psycopg
import structlog
from asgiref.sync import sync_to_async
from django.db import DatabaseError, InterfaceError, OperationalError, connection
from psycopg_pool import PoolTimeout

log = structlog.get_logger(__name__)

TRY_FOR_S = 2  # the shortest time that libpq takes
STOPPED = "No node is released until the database is back."
AGAIN = "Nothing was changed. Try again."


@dataclass(frozen=True)
class Outage:
    """The reason why the database did not do its work."""

    slug: str
    title: str
    sentence: str
    retry_after_s: int
    is_whole: bool = True  # True: affects every process; False: only this request

    @property
    def detail(self) -> str:
        return f"{self.sentence} {STOPPED if self.is_whole else AGAIN}"


AWAY = Outage("database-away", "Database unreachable", "The database does not answer.", 5)
STARTING = Outage(
    "database-starting", "The database is starting", "The database starts, stops or recovers from a crash.", 5
)
FULL = Outage("database-full", "The database is full", "The disk of the database is full. Free some space.", 30)
READ_ONLY = Outage(
    "database-read-only",
    "The database is read-only",
    "The database accepts no writes. It is a standby or configured so.",
    10,
)
BROKEN = Outage("database-broken", "The disk of the database fails", "The database cannot read or write its files.", 30)
SIGN_IN = Outage(
    "database-sign-in",
    "The database refuses Quarterdeck",
    "The database refuses our user, password or database name.",
    30,
)
MANY = Outage("database-busy", "The database is busy", "All connections to the database are in use.", 2, is_whole=False)
LOCKED = Outage("database-locked", "The database is locked", "Another transaction holds the lock.", 2, is_whole=False)
SLOW = Outage("database-slow", "The database is slow", "The query exceeded its time limit.", 5, is_whole=False)

# By SQLSTATE, the longest prefix first (postgresql.org/docs/current/errcodes-appendix.html).
BY_STATE: dict[str, Outage] = {
    "55P03": LOCKED,  # lock_not_available: lock_timeout
    "40P01": LOCKED,  # deadlock_detected
    "40001": LOCKED,  # serialization_failure
    "25P03": SLOW,  # idle_in_transaction_session_timeout
    "57014": SLOW,  # query_canceled: statement_timeout
    "25006": READ_ONLY,  # read_only_sql_transaction
    "53100": FULL,  # disk_full
    "53200": BROKEN,  # out_of_memory
    "53300": MANY,  # too_many_connections
    "57P01": STARTING,  # admin_shutdown
    "57P02": STARTING,  # crash_shutdown
    "57P03": STARTING,  # cannot_connect_now
    "58": BROKEN,  # system error, of the operating system
    "28": SIGN_IN,
    "3D": SIGN_IN,
    "08": AWAY,
}
# By text in the message, where there is no SQLSTATE: from libpq while connecting, and from SQLite.
BY_MESSAGE: tuple[tuple[str, Outage], ...] = (
    ("in recovery mode", STARTING),
    ("starting up", STARTING),
    ("shutting down", STARTING),
    ("not yet accepting connections", STARTING),
    ("too many clients", MANY),
    ("connection slots are reserved", MANY),
    ("no space left on device", FULL),
    ("password authentication failed", SIGN_IN),
    ("pg_hba.conf", SIGN_IN),
    ("database is locked", LOCKED),
    ("table is locked", LOCKED),
    ("database or disk is full", FULL),
    ("readonly database", READ_ONLY),
    ("disk i/o error", BROKEN),
    ("disk image is malformed", BROKEN),
    ("unable to open database file", AWAY),
    ("connection refused", AWAY),
    ("connection failed", AWAY),
    ("could not translate host name", AWAY),
    ("failed to resolve host", AWAY),
    ("server closed the connection", AWAY),
    ("connection is closed", AWAY),
    ("connection is lost", AWAY),
    ("connection already closed", AWAY),
)


def outage_of(error: BaseException | None) -> Outage | None:
    """Returns the outage. None: the error is not an outage, even if it is a database error."""
    return next((outage for cause in _causes(error) if (outage := _outage(cause))), None)


def _outage(error: BaseException) -> Outage | None:
    if isinstance(error, PoolTimeout):
        return _why_no_connection()
    state = getattr(error, "sqlstate", None)
    if state:
        return next((BY_STATE[state[:size]] for size in (5, 2) if state[:size] in BY_STATE), None)
    if not isinstance(error, OperationalError | InterfaceError) and type(error) is not DatabaseError:
        return None
    return _by_message(error)


def _by_message(error: BaseException) -> Outage | None:
    words = str(error).lower()
    return next((outage for part, outage in BY_MESSAGE if part in words), None)


def _why_no_connection() -> Outage:
    """Tells a database that accepts no connection from a pool whose connections are all in use. Tries one: the pool
    itself reports both alike."""
    if connection.vendor != "postgresql":
        return MANY
    try:
        psycopg.connect(**connection.get_connection_params() | {"connect_timeout": TRY_FOR_S}).close()
    except psycopg.OperationalError as error:
        return _by_message(error) or AWAY
    return MANY


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yields the error and its causes: Django wraps the driver's error, which has the SQLSTATE."""
    while error is not None:
        if error.__cause__ is not None:
            yield error.__cause__
        yield error
        error = error.__cause__ or error.__context__


class FullDisk:
    """The last write of this process that a full disk refused.

    PostgreSQL still takes small writes then, such as a probe's: a page has room, but no table can grow.
    """

    def __init__(self) -> None:
        self._refused_at: float | None = None

    def note(self, outage: Outage) -> None:
        if outage is FULL:
            self._refused_at = time.monotonic()

    @property
    def is_recent(self) -> bool:
        """Returns whether that was so recently that clients still wait."""
        return self._refused_at is not None and time.monotonic() - self._refused_at < FULL.retry_after_s


full_disk = FullDisk()


class CloseOnOutage:
    """Closes a WebSocket during an outage with a code on which the page reconnects."""

    TRY_AGAIN = 1012

    def __init__(self, app: Callable[..., Awaitable[None]]) -> None:
        self.app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        is_accepted = False

        async def tracked_send(message: dict[str, Any]) -> None:
            nonlocal is_accepted
            is_accepted = is_accepted or message["type"] == "websocket.accept"
            await send(message)

        try:
            await self.app(scope, receive, tracked_send)
        except Exception as error:
            if (outage := await sync_to_async(outage_of, thread_sensitive=False)(error)) is None:
                raise
            log.warning("database outage", error=str(error), outage=outage.slug)
            if not is_accepted:  # before the accept, a browser gets no close code
                await send({"type": "websocket.accept"})
            await send({"type": "websocket.close", "code": self.TRY_AGAIN, "reason": outage.title})
