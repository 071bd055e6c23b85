"""Two who write the same rows: one waits for the other, on whichever database."""

from collections.abc import Callable
from threading import Event, Thread

from django.db import connection, transaction

from demo.visitor import wait_until
from tests.patience import PATIENCE_S


def one_waits() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted")
        return cursor.fetchone()[0] > 0


def while_it_is_written(
    first: Callable[[], object], second: Callable[[], object], then: Callable[[], object] = list
) -> list[Exception]:
    """Do the second while the first is not committed yet, and `then` more of the first while the second waits.

    What the second came to, if it failed.
    """
    is_done, errors = Event(), []

    def other() -> None:
        is_done.wait(PATIENCE_S)
        try:
            second()
        except Exception as error:  # noqa: BLE001 - what it was is what the test asks
            errors.append(error)
        finally:
            connection.close()

    thread = Thread(target=other)
    thread.start()
    with transaction.atomic():
        first()
        is_done.set()
        if connection.vendor == "postgresql":  # SQLite has one writer: the other waits for its transaction
            wait_until(one_waits, what="a second that waits", timeout_s=PATIENCE_S)
        then()
    thread.join()
    return errors
