"""How long a statement waits for a lock that another transaction holds."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta

from django.db import DatabaseError, connection
from django.db.models import QuerySet

LOCK_WAIT = timedelta(milliseconds=400)  # of what a person waits for, and of what a sweep does again
LOCK_NOT_AVAILABLE = "55P03"  # PostgreSQL's lock_timeout, and NOWAIT


@contextmanager
def wait_for_locks(at_most: timedelta = LOCK_WAIT) -> Iterator[None]:
    """Give up a lock sooner than this process does elsewhere. SQLite has one lock, and its own time for it."""
    if connection.vendor != "postgresql":
        yield
        return
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('lock_timeout', %s, false)", [f"{at_most // timedelta(milliseconds=1)}ms"])
    try:
        yield
    finally:
        # A transaction that failed, and a connection that is lost, take the setting with them.
        if not connection.needs_rollback:
            with suppress(DatabaseError), connection.cursor() as cursor:
                cursor.execute("RESET lock_timeout")


@contextmanager
def sqlite_waits(at_most: timedelta) -> Iterator[None]:
    """Give up SQLite's one lock sooner than this process does elsewhere. Nothing on PostgreSQL."""
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
    """Whether a statement gave up because another transaction held the lock that it needed. PostgreSQL only."""
    return getattr(error.__cause__, "sqlstate", None) == LOCK_NOT_AVAILABLE


def lock_unheld(rows: QuerySet) -> bool:
    """Lock rows in this transaction, and wait for none. False: another transaction has them, or there are none.

    True on SQLite: whoever writes has the whole database.
    """
    if not connection.features.has_select_for_update_skip_locked:
        return True
    return bool(list(rows.select_for_update(no_key=True, skip_locked=True).order_by().values_list("pk")))
