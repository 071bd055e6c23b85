"""How long transactions that write take: nobody else writes meanwhile on SQLite, nor their rows on PostgreSQL (Z40)."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from django.db import connection
from django.db.transaction import Atomic

WRITES = ("INSERT", "UPDATE", "DELETE")


@dataclass
class Writes:
    """Of this thread's connection, while the block of `watch_writes` ran. In milliseconds."""

    number: int = 0
    longest_ms: float = 0.0
    longest_cpu_ms: float = 0.0  # of this thread: what a busy machine takes away is not in it

    def add(self, since: tuple[float, float]) -> None:
        wall, cpu = clocks()
        self.number += 1
        self.longest_ms = max(self.longest_ms, (wall - since[0]) * 1000)
        self.longest_cpu_ms = max(self.longest_cpu_ms, (cpu - since[1]) * 1000)


def clocks() -> tuple[float, float]:
    return time.monotonic(), time.thread_time()


@contextmanager
def watch_writes() -> Iterator[Writes]:
    """Time each outermost transaction that writes, from its BEGIN to its COMMIT, and each write outside of one."""
    found, began = Writes(), (0.0, 0.0)
    has_written = False
    enter, leave = Atomic.__enter__, Atomic.__exit__

    def watched_enter(atomic: Atomic) -> None:
        nonlocal began, has_written
        is_outer = not connection.in_atomic_block
        enter(atomic)
        if is_outer:
            began, has_written = clocks(), False

    def watched_leave(atomic: Atomic, *error: Any) -> None:
        leave(atomic, *error)
        if not connection.in_atomic_block and has_written:
            found.add(began)

    def watched_statement(execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:  # noqa: FBT001 - as Django calls it
        nonlocal has_written
        if not sql.startswith(WRITES):
            return execute(sql, params, many, context)
        has_written, since = True, clocks()
        done = execute(sql, params, many, context)
        if not connection.in_atomic_block:
            found.add(since)
        return done

    Atomic.__enter__, Atomic.__exit__ = watched_enter, watched_leave
    try:
        with connection.execute_wrapper(watched_statement):
            yield found
    finally:
        Atomic.__enter__, Atomic.__exit__ = enter, leave
