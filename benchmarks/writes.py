"""How long transactions that write take: nobody else writes meanwhile on SQLite, nor their rows on PostgreSQL (Z40)."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.db import connection
from django.db.transaction import Atomic

if TYPE_CHECKING:
    from benchmarks.figures import Figures

LONGEST_MS = 250  # a halt waits for the longest transaction
RUN_QUEUE = Path("/proc/thread-self/schedstat")  # its second number: ns that this thread waited for a core
SQL_CHARS = 60
WRITES = ("INSERT", "UPDATE", "DELETE")


@dataclass
class Writes:
    """The transactions of this thread's connection during `watch_writes`. In milliseconds."""

    number: int = 0
    longest_ms: float = 0.0  # by the clock, without the time for which this thread waited for a core
    longest_cpu_ms: float = 0.0  # of this thread alone: without the time for which it waited for a database server
    longest_sql: str = ""  # the last statement that wrote in the longest one
    most_rows: int = 0  # written by one transaction

    def add(self, since: tuple[float, float], sql: str, rows: int) -> None:
        wall, cpu = clocks()
        self.number += 1
        self.most_rows = max(self.most_rows, rows)
        self.longest_cpu_ms = max(self.longest_cpu_ms, (cpu - since[1]) * 1000)
        took_ms = (wall - since[0]) * 1000
        if took_ms > self.longest_ms:
            self.longest_ms, self.longest_sql = took_ms, sql


def clocks() -> tuple[float, float]:
    waited_ns = int(RUN_QUEUE.read_text().split()[1])
    return time.monotonic() - waited_ns / 1e9, time.thread_time()


def report_longest_write(figures: "Figures", longest_ms: float, **more: Any) -> None:
    figures.at_most("longest_write_ms", round(longest_ms, 1), LONGEST_MS, "ms", **more)


def _rows_written() -> int | None:
    """Returns the number of rows that SQLite's connection has written; None on PostgreSQL, whose cursors count."""
    return connection.connection.total_changes if connection.vendor == "sqlite" else None


@contextmanager
def watch_writes() -> Iterator[Writes]:
    """Time each outermost transaction that writes, from its BEGIN to its COMMIT, and each write outside of one."""
    found, began = Writes(), (0.0, 0.0)
    written, rows = "", 0
    enter, leave = Atomic.__enter__, Atomic.__exit__

    def watched_enter(atomic: Atomic) -> None:
        nonlocal began, written, rows
        is_outer = not connection.in_atomic_block
        enter(atomic)
        if is_outer:
            began, written, rows = clocks(), "", 0

    def watched_leave(atomic: Atomic, *error: Any) -> None:
        leave(atomic, *error)
        if not connection.in_atomic_block and written:
            found.add(began, written, rows)

    def watched_statement(execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:  # noqa: FBT001 - as Django calls it
        nonlocal written, rows
        if not sql.startswith(WRITES):
            return execute(sql, params, many, context)
        written, since, before = sql[:SQL_CHARS], clocks(), _rows_written()
        done = execute(sql, params, many, context)
        number = max(context["cursor"].rowcount, 0) if before is None else (_rows_written() or 0) - before
        rows += number
        if not connection.in_atomic_block:
            found.add(since, written, number)
        return done

    Atomic.__enter__, Atomic.__exit__ = watched_enter, watched_leave
    try:
        with connection.execute_wrapper(watched_statement):
            yield found
    finally:
        Atomic.__enter__, Atomic.__exit__ = enter, leave
