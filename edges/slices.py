"""Many rows in short transactions: a person's halt finds a gap between two (Z40)."""

import time
from collections.abc import Iterable, Iterator
from typing import Generic, TypeVar

from django.db import connection

T = TypeVar("T")

ROWS = 200  # of a slice, at most
LONGEST_S = 0.1  # that a slice takes new rows; then it is committed
# SQLite gives no writer a turn: one that waits looks again every 100 ms at the latest.
BREATH_S = 0.11
BREATHE_EVERY_S = 0.5


class Slice(Generic[T]):
    """What one transaction may write. Go over it inside the transaction: it ends once its time is up."""

    def __init__(self, rows: list[T]) -> None:
        self.rows = rows  # at most these
        self.written = 0  # of them so far

    def __iter__(self) -> Iterator[T]:
        began = time.monotonic()
        for row in self.rows:
            if self.written and time.monotonic() - began > LONGEST_S:
                return
            self.written += 1
            yield row

    def whole(self) -> list[T]:
        """All of them, for a few statements that write them at once."""
        self.written = len(self.rows)
        return self.rows


def slices(rows: Iterable[T]) -> Iterator[Slice[T]]:
    """One after the other, each of the rows that those before it have left. Between two none is open."""
    left = list(rows)
    breathed_at = time.monotonic()
    while left:
        one = Slice(left[:ROWS])
        yield one
        left = left[one.written or len(one.rows) :]
        is_alone = connection.vendor == "sqlite" and not connection.in_atomic_block
        if left and is_alone and time.monotonic() - breathed_at > BREATHE_EVERY_S:
            time.sleep(BREATH_S)
            breathed_at = time.monotonic()
