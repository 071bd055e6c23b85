"""Writes of many rows in short transactions, so that a person's halt can run in between (Z40)."""

import time
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Generic, TypeVar

from django.db import connection

T = TypeVar("T")

ROWS = 200  # at most, per slice
LONGEST_S = 0.1  # time after which a slice takes no more rows
# SQLite has no queue of writers. A waiting writer retries at least every 100 ms.
PAUSE_S = 0.11
PAUSE_EVERY_S = 0.25


class Slice(Generic[T]):
    """The rows of one transaction. Iterate inside the transaction; iteration ends when the time is up."""

    def __init__(self, rows: list[T]) -> None:
        self.rows = rows  # at most these
        self.written = 0  # rows written so far

    def __iter__(self) -> Iterator[T]:
        began = time.monotonic()
        for row in self.rows:
            if self.written and time.monotonic() - began > LONGEST_S:
                return
            self.written += 1
            yield row

    def whole(self) -> list[T]:
        """Returns all rows, for statements that write them at once."""
        self.written = len(self.rows)
        return self.rows


def slices(rows: Iterable[T]) -> Iterator[Slice[T]]:
    """Yields slices one after another, each from the rows still unwritten. No transaction is open between two
    slices. A generator is read as far as the next slice."""
    source = iter(rows)
    remaining = list(islice(source, ROWS))
    paused_at = time.monotonic()
    while remaining:
        current = Slice(remaining)
        yield current
        remaining = remaining[current.written or len(current.rows) :]
        remaining += islice(source, ROWS - len(remaining))
        is_alone = connection.vendor == "sqlite" and not connection.in_atomic_block
        if remaining and is_alone and time.monotonic() - paused_at > PAUSE_EVERY_S:
            time.sleep(PAUSE_S)
            paused_at = time.monotonic()
