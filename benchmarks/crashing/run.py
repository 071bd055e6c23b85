"""Schedules in as many processes as there are cores. Each takes some lives, so that no life is lived twice."""

from __future__ import annotations

import gc
import logging
import multiprocessing
import os
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection, wait
from typing import Any

from benchmarks.writes import Writes, watch_writes

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
    seams: dict[str, bool] = field(default_factory=dict)  # of the lives that were lived: whether it is a gap
    cut: set[str] = field(default_factory=set)  # those of them at which something happened
    longest_write_ms: float = 0.0
    longest_write_sql: str = ""
    counts: Counter[str] = field(default_factory=Counter)
    examples: dict[str, list[tuple[int, str]]] = field(default_factory=dict)

    def take(self, number: int, rounds: int, cut: str, violations: list[tuple[str, str]]) -> None:
        """What a process says of one schedule."""
        self.schedules += 1
        self.rounds += rounds
        self.cut.add(cut)
        for figure, says in violations:
            print(f"schedule {number}, {figure}: {says}", file=sys.stderr, flush=True)  # a whole run takes its time
            self.add(number, figure, says)

    def take_writes(self, writes: Writes) -> None:
        if writes.longest_ms > self.longest_write_ms:
            self.longest_write_ms, self.longest_write_sql = writes.longest_ms, writes.longest_sql

    def add(self, number: int, figure: str, says: str) -> None:
        self.counts[figure] += 1
        known = self.examples.setdefault(figure, [])
        if len(known) < SHOWN:
            known.append((number, says))

    @property
    def uncut(self) -> list[str]:
        """The seams at which nothing happened, the gaps first."""
        return sorted(self.seams.keys() - self.cut, key=lambda seam: not self.seams[seam])

    def join(self, other: Found) -> None:
        """What was found meanwhile, elsewhere."""
        self.counts += other.counts
        for figure, examples in other.examples.items():
            self.examples[figure] = [*self.examples.get(figure, ()), *examples]


def set_up() -> None:
    """Django, on settings of its own."""
    os.environ |= SETTINGS
    import django

    django.setup()


def make_ready() -> None:
    """Django, with an empty database in memory, and without a word in any log."""
    set_up()
    import structlog
    from django.apps import apps
    from django.conf import settings
    from django.core.management import call_command
    from django.db import connection

    logging.disable(logging.CRITICAL)
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    with connection.cursor() as cursor:
        cursor.execute(f"PRAGMA page_size={SMALL_PAGES}")
        cursor.execute("VACUUM")
    # The tables as the models say, in a tenth of the time: that migrations lead there is another test's.
    settings.MIGRATION_MODULES = dict.fromkeys(app.label for app in apps.get_app_configs())
    call_command("migrate", run_syncdb=True, verbosity=0)


def schedules(seed: int, numbers: Iterable[int], *, plant: str = "", few: bool = False) -> Iterator[tuple[int, Any]]:
    """What comes of each. `few`: of fewer lives, for those who have seconds."""
    from benchmarks.crashing.plants import planted
    from benchmarks.crashing.world import in_this_process

    with in_this_process():
        runner = runner_of(seed, few=few)
        runner.get_ready(numbers, all_guards=not plant)
        gc.collect()
        gc.freeze()
        gc.disable()
        with planted(plant):
            for done, number in enumerate(numbers):
                yield number, runner.run(number)
                if done % TIDY_EVERY == 0:
                    gc.collect()


@dataclass(frozen=True)
class Tried:
    """What became of the engine without one of its guards."""

    plant: str
    schedules: int
    number: int | None = None  # of the schedule that found it out; None: none did
    figure: str = ""
    says: str = ""


def each_plant(
    seed: int,
    plants: Mapping[str, int | None],
    count: int,
    *,
    few: bool,
    only_pulls: bool = False,
    only_cases: bool = False,
) -> Iterator[Tried]:
    """Take each of these guards out until something is found: in one process, so that it is ready once for all.

    `plants`: of each the schedule that is tried before all others, if any.
    """
    numbers = runner_of(seed, few=few).numbers(count, 0, 1, only_pulls=only_pulls, only_cases=only_cases)
    for plant, first in plants.items():
        known = Tried(plant, 0) if first is None else _until_found(seed, plant, [first], few=few)
        if known.number is None:  # What the first needs is ready much sooner than what all of them need.
            rest = _until_found(seed, plant, numbers, few=few)
            known = replace(rest, schedules=known.schedules + rest.schedules)
        yield known


def _until_found(seed: int, plant: str, numbers: Sequence[int], *, few: bool) -> Tried:
    """What breaks is no guard that is out: then what stands in its place does not fit any more."""
    with closing(schedules(seed, numbers, plant=plant, few=few)) as outcomes:
        for tried, (number, outcome) in enumerate(outcomes, 1):
            first, is_broken = next(iter(outcome.violations), None), outcome.world.bugs
            if first and not is_broken:
                return Tried(plant, tried, number, first.figure, first.says)
    return Tried(plant, len(numbers))


def runner_of(seed: int, *, few: bool) -> Any:
    from benchmarks.crashing.plays import COURSES, SHAPES
    from benchmarks.crashing.runner import Runner

    return Runner(seed, shapes=SHAPES[:2] if few else SHAPES, courses=COURSES[:3] if few else COURSES)


def in_processes(
    seed: int,
    count: int,
    *,
    plant: str = "",
    few: bool = False,
    only_pulls: bool = False,
    only_cases: bool = False,
    processes: int = 0,
) -> Found:
    """Without one of its guards the engine needs no more than to be found out once."""
    found = Found()
    if not count:
        return found
    processes = min(processes or os.cpu_count() or 1, count)
    context = multiprocessing.get_context("spawn")
    pipes: list[Connection] = []
    started = []
    for part in range(processes):
        ours, theirs = context.Pipe(duplex=False)
        arguments = (theirs, seed, count, (part, processes), plant, few, only_pulls, only_cases)
        started.append(context.Process(target=_run_part, args=arguments, daemon=True))
        started[-1].start()
        theirs.close()
        pipes.append(ours)
    _gather(found, pipes, count, until_found=bool(plant))
    for process in started:
        process.terminate()
    return found


def _gather(found: Found, pipes: list[Connection], count: int, *, until_found: bool) -> None:
    """:raises RuntimeError: when a process ended before its time"""
    began, told_at = time.monotonic(), 0.0
    running = len(pipes)
    while pipes and not (until_found and found.counts):
        for pipe in [one for one in wait(pipes) if isinstance(one, Connection)]:
            try:
                said = pipe.recv()
            except EOFError:
                pipes.remove(pipe)
                continue
            if isinstance(said, dict):
                running -= 1
                found.seams |= said
            elif isinstance(said, Writes):
                found.take_writes(said)
            else:
                found.take(*said)
        if time.monotonic() - told_at > TELL_EVERY_S or not pipes:
            told_at = time.monotonic()
            _tell(found, count, told_at - began)
    if running and not pipes:
        raise RuntimeError("a process of the bench itself ended before its time")


def _run_part(
    pipe: Connection, seed: int, count: int, part: tuple[int, int], plant: str, few: bool, only_pulls: bool,  # noqa: FBT001
    only_cases: bool,  # noqa: FBT001
) -> None:  # fmt: skip
    make_ready()
    runner = runner_of(seed, few=few)
    numbers = runner.numbers(count, *part, only_pulls=only_pulls, only_cases=only_cases)
    with watch_writes() as writes:
        for number, outcome in schedules(seed, numbers, plant=plant, few=few):
            pipe.send((number, outcome.rounds, outcome.cut, [(one.figure, one.says) for one in outcome.violations]))
    pipe.send(writes)
    pipe.send(runner.seams(numbers))
    pipe.close()


def _tell(found: Found, count: int, seconds: float) -> None:
    sick = ", ".join(f"{figure} {number}" for figure, number in sorted(found.counts.items())) or "nothing found"
    line = f"{found.schedules} of {count} schedules, {found.rounds} rounds, {seconds:.0f} s: {sick}"
    print(line, file=sys.stderr, flush=True)
