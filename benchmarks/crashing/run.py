"""Schedules in as many processes as there are cores: each process takes every so-many-th."""

import gc
import logging
import multiprocessing
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from typing import Any

SETTINGS = {"DJANGO_SETTINGS_MODULE": "config.settings.test", "DATABASE_URL": "sqlite://:memory:"}
SMALL_PAGES = 512  # bytes: a database of a hundred tables, kept and put back with every schedule
SHOWN = 3  # violations of each figure that are told in full
KILLED = -1  # in the place of a schedule's number: what a real stack has shown
TIDY_EVERY = 100
TELL_EVERY_S = 10.0


@dataclass
class Found:
    """What came of schedules."""

    schedules: int = 0
    rounds: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    examples: dict[str, list[tuple[int, str]]] = field(default_factory=dict)

    def add(self, number: int, figure: str, says: str) -> None:
        self.counts[figure] += 1
        known = self.examples.setdefault(figure, [])
        if len(known) < SHOWN:
            known.append((number, says))


def set_up() -> None:
    """Django, on settings of its own."""
    os.environ |= SETTINGS
    import django

    django.setup()


def make_ready() -> None:
    """Django, with an empty database in memory, and without a word in any log."""
    set_up()
    import structlog
    from django.core.management import call_command
    from django.db import connection

    logging.disable(logging.CRITICAL)
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    with connection.cursor() as cursor:
        cursor.execute(f"PRAGMA page_size={SMALL_PAGES}")
        cursor.execute("VACUUM")
    call_command("migrate", verbosity=0)


def schedules(seed: int, numbers: range, *, plant: str = "", few: bool = False) -> Iterator[tuple[int, Any]]:
    """What comes of each. `few`: of fewer lives, for those who have seconds."""
    from benchmarks.crashing.plants import planted
    from benchmarks.crashing.plays import COURSES, SHAPES
    from benchmarks.crashing.schedule import Runner
    from benchmarks.crashing.world import in_this_process

    runner = Runner(seed, shapes=SHAPES[:2] if few else SHAPES, courses=COURSES[:3] if few else COURSES)
    with in_this_process():
        runner.get_ready(numbers)
        gc.collect()
        gc.freeze()
        gc.disable()
        with planted(plant):
            for number in numbers:
                yield number, runner.run(number)
                if number % TIDY_EVERY == 0:
                    gc.collect()


def in_processes(seed: int, count: int, *, plant: str = "", few: bool = False, processes: int = 0) -> Found:
    found = Found()
    if not count:
        return found
    processes = min(processes or os.cpu_count() or 1, count)
    began, told_at = time.monotonic(), 0.0
    context = multiprocessing.get_context("spawn")
    pipes: list[Connection] = []
    for part in range(processes):
        ours, theirs = context.Pipe(duplex=False)
        arguments = (theirs, seed, range(part, count, processes), plant, few)
        context.Process(target=_run_part, args=arguments, daemon=True).start()
        theirs.close()
        pipes.append(ours)
    ended = 0
    while pipes:
        for pipe in [one for one in wait(pipes) if isinstance(one, Connection)]:
            try:
                said = pipe.recv()
            except EOFError:
                pipes.remove(pipe)
                continue
            if said is None:
                ended += 1
                continue
            number, rounds, violations = said
            found.schedules += 1
            found.rounds += rounds
            for figure, says in violations:
                found.add(number, figure, says)
        if time.monotonic() - told_at > TELL_EVERY_S or not pipes:
            told_at = time.monotonic()
            _tell(found, count, told_at - began)
    if ended < processes:
        raise RuntimeError("a process of the bench itself ended before its time")
    return found


def _run_part(pipe: Connection, seed: int, numbers: range, plant: str, few: bool) -> None:  # noqa: FBT001
    make_ready()
    for number, outcome in schedules(seed, numbers, plant=plant, few=few):
        pipe.send((number, outcome.rounds, [(one.figure, one.says) for one in outcome.violations]))
    pipe.send(None)
    pipe.close()


def _tell(found: Found, count: int, seconds: float) -> None:
    sick = ", ".join(f"{figure} {number}" for figure, number in sorted(found.counts.items())) or "nothing found"
    line = f"{found.schedules} of {count} schedules, {found.rounds} rounds, {seconds:.0f} s: {sick}"
    print(line, file=sys.stderr, flush=True)
