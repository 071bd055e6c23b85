"""Limits on how long a statement waits for a lock of another transaction."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from datetime import timedelta

from django.db import DatabaseError, connection
from django.db.models import QuerySet

LOCK_WAIT = timedelta(milliseconds=400)  # for writes that a person waits for, and for writes that a sweep repeats
LOCK_NOT_AVAILABLE = "55P03"  # PostgreSQL's lock_timeout, and NOWAIT
# Of the innermost `wait_for_locks`; blank: outside of one.
_in_force: ContextVar[str] = ContextVar("lock_timeout", default="")
SET = "SELECT set_config('lock_timeout', %s, false)"


@contextmanager
def wait_for_locks(at_most: timedelta = LOCK_WAIT) -> Iterator[None]:
    """Sets a shorter lock timeout on PostgreSQL, then the one before again. SQLite has one lock and its own timeout."""
    if connection.vendor != "postgresql":
        yield
        return
    limit = f"{at_most // timedelta(milliseconds=1)}ms"
    with connection.cursor() as cursor:
        cursor.execute(SET, [limit])
    token = _in_force.set(limit)
    try:
        yield
    finally:
        _in_force.reset(token)
        # A failed transaction or a lost connection drops the setting itself.
        if not connection.needs_rollback:
            with suppress(DatabaseError), connection.cursor() as cursor:
                if before := _in_force.get():
                    cursor.execute(SET, [before])
                else:
                    cursor.execute("RESET lock_timeout")


@contextmanager
def sqlite_waits(at_most: timedelta) -> Iterator[None]:
    """Sets a shorter timeout for SQLite's lock. Does nothing on PostgreSQL."""
    if connection.vendor != "sqlite":
        yield
        return
    with connection.cursor() as cursor:
        (before,) = cursor.execute("PRAGMA busy_timeout").fetchone()
        cursor.execute(f"PRAGMA busy_timeout = {at_most // timedelta(milliseconds=1)}")
        try:
            yield
        finally:
            cursor.execute(f"PRAGMA busy_timeout = {before}")


def is_lock_timeout(error: Exception) -> bool:
    """Tells whether a statement gave up on a lock of another transaction. PostgreSQL only."""
    return getattr(error.__cause__, "sqlstate", None) == LOCK_NOT_AVAILABLE


def lock_unheld(rows: QuerySet) -> bool:
    """Locks rows in this transaction without waiting. False: another transaction holds them, or there are none.

    Always True on SQLite, where a writer locks the whole database.
    """
    if not connection.features.has_select_for_update_skip_locked:
        return True
    return bool(list(rows.select_for_update(no_key=True, skip_locked=True).order_by().values_list("pk")))
