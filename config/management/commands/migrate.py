"""Django's migrate behind an advisory lock of PostgreSQL, so that two Jobs never apply the same migration.

A migration that was cut off is applied again by the next run, also one without a transaction.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.core.management.commands import migrate
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

from edges.online_index import columns_added_once

LOCK = 7_402_011  # no meaning; nothing else of Quarterdeck uses an advisory lock
POLL_S = 1.0


class Command(migrate.Command):
    def handle(self, *args: Any, **options: Any) -> None:
        connection = connections[options["database"]]
        if connection.vendor != "postgresql" or options["check_unapplied"] or options["plan"]:
            with columns_added_once():
                super().handle(*args, **options)
            return
        with _only_one(connection), columns_added_once():
            super().handle(*args, **options)


@contextmanager
def _only_one(connection: BaseDatabaseWrapper) -> Iterator[None]:
    """Polls for the lock: a session that waits inside PostgreSQL blocks CREATE INDEX CONCURRENTLY."""
    with connection.cursor() as cursor:
        while not _answer(cursor, "SELECT pg_try_advisory_lock(%s)"):
            time.sleep(POLL_S)
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            _answer(cursor, "SELECT pg_advisory_unlock(%s)")


def _answer(cursor: Any, statement: str) -> bool:
    cursor.execute(statement, [LOCK])
    return bool(cursor.fetchone()[0])
