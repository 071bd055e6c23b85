"""Which schedules there are: each from the seed and its number alone.

Every second one cuts a seam of undisturbed lives, each in its turn, the gaps first: who dies just before the next thing
leaves what he leaves in the gap before it. In most of the others something happens once:
before a write that rests on its not happening, to a node that is about to go, or to what lets it go; in the rest, much.
What happens is random from the seed. One in twenty of all has two plans that share a pool, and cuts none of those
seams; neither do one in twenty with cases and operations on nodes, and one in ten with operations that pull an image.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from benchmarks.crashing import case_plays
from benchmarks.crashing.case_people import CaseCourse
from benchmarks.crashing.case_schedule import CaseSchedule
from benchmarks.crashing.case_world import in_its_place
from benchmarks.crashing.oracle import Violation
from benchmarks.crashing.pair_plays import pair_of
from benchmarks.crashing.pair_schedule import PairSchedule
from benchmarks.crashing.plays import COURSES, SHAPES, WHOLE, Course, Moment, moments, world_of
from benchmarks.crashing.schedule import Schedule
from benchmarks.crashing.world import Shape, World, connected

STRIDE = 7919  # a prime: every seam has its turn, and a short run has some from everywhere
BUSY = 0.6  # of the random ones: those that begin where something is written
RACED, BEFALLEN, TAKEN_BACK = 0.5, 0.22, 0.1  # of those that cut no seam
PULL_EVERY, PULL_AT = 10, 9
PAIR_EVERY, PAIR_AT = 20, 7
CASE_EVERY, CASE_AT = 20, 17
ENDINGS = ("go on", "go on", "rollback", "abort")


@dataclass(frozen=True)
class Outcome:
    violations: tuple[Violation, ...]
    rounds: int
    world: World  # as it was left: until the next schedule of its shape
    cut: str = ""  # which seam; blank: it cuts none of those


class Runner:
    """Runs schedules in one process, each from the seed and its number alone."""

    def __init__(self, seed: int, *, shapes: tuple[Shape, ...] = SHAPES, courses: tuple[Course, ...] = COURSES) -> None:
        self.seed = seed
        shared = [(shape, course) for shape in shapes for course in courses]
        self.lives = [(*life, slot) for life in shared for slot in range(life[1].share)]
        self._ended: set[tuple[Shape, str, Any]] = set()  # from where the same people have come to an end before

    def numbers(
        self, count: int, part: int, parts: int, *, only_pulls: bool = False, only_cases: bool = False
    ) -> list[int]:
        """Of so many schedules, those of one of several processes: all of some lives."""
        own = {slot for slot in range(len(self.lives)) if slot * parts // len(self.lives) == part}
        if only_cases:
            return [*range(CASE_AT, count * CASE_EVERY, CASE_EVERY)][part::parts]
        if only_pulls:
            return [*range(PULL_AT, count * PULL_EVERY, PULL_EVERY)][part::parts]
        return [number for number in range(count) if number // 2 % len(self.lives) in own]

    def get_ready(self, numbers: Iterable[int], *, all_guards: bool = True) -> None:
        """Live every life that they need once, with all guards, so that there is something to begin from.

        `all_guards`: they run with them, too, so that what such a life has come to they will come to.
        """
        for shape, course in self._lives(numbers):
            for moment in moments(shape, course):
                if all_guards and moment.leads_to is not None:
                    self._ended.add((shape, moment.leads_to, moment.signature))
        for number in (each for each in numbers if self._has_two_plans(each)):
            pair_of(self._shape_of_pair(number))
        for number in (each for each in numbers if _has_cases(each)):
            case_plays.case_moments(_case(number))

    def seams(self, numbers: Iterable[int]) -> dict[str, bool]:
        """Those of the lives that these need, as `Outcome.cut` calls them. Each: whether it is a gap."""
        return {
            _called(shape, course, *at): _is_gap(life, *at)
            for shape, course in self._lives(numbers)
            for life in [moments(shape, course)]
            for at in _in_turn(life)
        }

    def _lives(self, numbers: Iterable[int]) -> list[tuple[Shape, Course]]:
        needed = {self._life(number)[:2] for number in numbers if not _has_cases(number)}
        return [(shape, course) for shape, course, slot in self.lives if slot == 0 and (shape, course) in needed]

    def _life(self, number: int) -> tuple[Shape, Course, int]:
        return self.lives[number // 2 % len(self.lives)]

    def run(self, number: int) -> Outcome:
        chance = random.Random(f"{self.seed}:{number}")
        if self._has_two_plans(number):
            return self._run_pair(number, chance)
        if _has_cases(number):
            return self._run_cases(number, chance)
        turn, is_random = divmod(number, 2)
        shape, course, slot = self._life(number)
        world, life = world_of(shape), moments(shape, course)
        cut = ""
        with connected(world):
            schedule = Schedule(world, chance, self._ended)
            if not is_random:
                at, seam = seam_in_turn(life, turn // len(self.lives) * course.share + slot, self.seed)
                schedule.cut(life[at], seam)
                cut = _called(shape, course, at, seam)
            elif (share := chance.random()) < RACED:
                schedule.race(life if course is WHOLE else (*moments(shape, WHOLE), *life))
            elif share < RACED + BEFALLEN:
                schedule.befall(moments(shape, WHOLE))
            elif share < RACED + BEFALLEN + TAKEN_BACK:
                schedule.take_back(moments(shape, WHOLE))
            else:
                schedule.go_wild(_somewhere(life, chance))
            if not world.is_old_copy:  # who has put an old copy back takes over by hand (docs/takeover.md)
                schedule.calm_down(chance.choice(ENDINGS))
            return Outcome(tuple(schedule.judge()), schedule.rounds, world, cut)

    def _has_two_plans(self, number: int) -> bool:
        return number % PAIR_EVERY == PAIR_AT

    def _shape_of_pair(self, number: int) -> Shape:
        """A ClusterPolicy has one driver object, and so one plan: in its place comes the first that has two."""
        shape, _, _ = self._life(number)
        return next(each for each, *_ in self.lives if not each.by_policy) if shape.by_policy else shape

    def _run_pair(self, number: int, chance: random.Random) -> Outcome:
        shape = self._shape_of_pair(number)
        pair, world = pair_of(shape), world_of(shape)
        with connected(world):
            schedule = PairSchedule(world, chance, self._ended)
            schedule.disturb(pair)
            schedule.calm_down()
            return Outcome(tuple(schedule.judge()), schedule.rounds, world)

    def _run_cases(self, number: int, chance: random.Random) -> Outcome:
        schedule = CaseSchedule(_case(number), chance)
        with in_its_place(schedule.ground):
            schedule.disturb()
            schedule.calm_down()
            return Outcome(tuple(schedule.judge()), schedule.rounds, schedule.world)


def _has_cases(number: int) -> bool:
    return number % CASE_EVERY == CASE_AT or number % PULL_EVERY == PULL_AT


def _case(number: int) -> CaseCourse:
    if number % PULL_EVERY == PULL_AT:
        return case_plays.PULLS[number // PULL_EVERY % len(case_plays.PULLS)]
    return case_plays.COURSES[number // CASE_EVERY % len(case_plays.COURSES)]


def _in_turn(life: tuple[Moment, ...]) -> list[tuple[int, int]]:
    """Every seam of all its rounds, by round and number: the gaps first."""
    seams = [(at, seam) for at, moment in enumerate(life) for seam in range(1, moment.seams + 1)]
    return sorted(seams, key=lambda one: not _is_gap(life, *one))


def _is_gap(life: tuple[Moment, ...], at: int, seam: int) -> bool:
    return seam in life[at].gaps


def seam_in_turn(life: tuple[Moment, ...], turn: int, seed: int) -> tuple[int, int]:
    """Whose turn it is: none has another one before all have had theirs."""
    seams = _in_turn(life)
    turn, gaps = turn % len(seams), sum(len(moment.gaps) for moment in life)
    some = seams[:gaps] if turn < gaps else seams[gaps:]
    return some[(seed + STRIDE * turn) % len(some)]


def _called(shape: Shape, course: Course, at: int, seam: int) -> str:
    return f"{shape}, {course}: round {at}, seam {seam}"


def _somewhere(life: tuple[Moment, ...], chance: random.Random) -> Moment:
    busy = [moment for moment in life if moment.is_busy]
    return chance.choice(busy if chance.random() < BUSY else life)
