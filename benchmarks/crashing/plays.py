"""The lives of plans that nobody disturbs: where schedules begin, and which seams there are to be cut at."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from benchmarks.crashing import people
from benchmarks.crashing.rows import keep_database, put_database_back
from benchmarks.crashing.world import Kept, Shape, World, connected
from rollouts.models import Plan

SHAPES = (
    Shape(by_policy=False, nodes=3, budget=1, parallel=1),
    Shape(by_policy=True, nodes=3, budget=1, parallel=2),
    Shape(by_policy=False, nodes=5, budget=2, parallel=2),
    Shape(by_policy=True, nodes=4, budget=2, parallel=3),
)
MOST_ROUNDS = 60
STEPS_A_ROUND = 2  # of the operator


@dataclass(frozen=True)
class Course:
    """What people want of a plan, and when."""

    verb: str = ""
    at: int = 0  # before which round
    sick_canary: bool = False


COURSES = (
    Course(),
    Course("rollback", 6),
    Course("rollback", 14),
    Course("abort", 2),
    Course("abort", 13),
    Course("rollback", 11, sick_canary=True),
)


@dataclass(frozen=True)
class Moment:
    """The beginning of a round, and how many seams and requests the round has."""

    kept: Kept
    seams: int
    requests: int
    releases: tuple[int, ...]  # which of the requests take a hold off
    is_busy: bool  # something is written to a node or to the object


@lru_cache
def empty() -> bytes:
    """The database before there is anything in it."""
    return keep_database()


@lru_cache
def world_of(shape: Shape) -> World:
    put_database_back(empty())
    return World(shape)


@lru_cache
def blank(shape: Shape) -> Kept:
    return world_of(shape).keep()


@lru_cache
def moments(shape: Shape, course: Course) -> tuple[Moment, ...]:
    """Of each round, from the first to the end of the plan."""
    world, first = world_of(shape), blank(shape)
    world.put_back(first)
    with connected(world):
        return tuple(_play(world, course))


def _play(world: World, course: Course) -> Iterator[Moment]:
    if course.sick_canary:
        world.operator.sick.add(world.canary)
    for number in range(MOST_ROUNDS):
        if course.verb and number == course.at:
            people.command(world, "ada", course.verb)
        people.approve(world)
        kept = world.keep()
        turn = ordinary_round(world)
        yield Moment(kept, turn.seams, turn.requests, tuple(turn.releases), turn.has_written)
        if Plan.objects.get(pk=world.plan.pk).is_final:
            return
    raise RuntimeError(f"{world.shape} and {course} do not end: {world.plan.waiting_for}")


def ordinary_round(world: World):
    """The operator goes on, an observer writes what it sees, and a worker has its turn."""
    for _ in range(STEPS_A_ROUND):
        world.operator.step()
    world.rows.look(now=world.clock())
    turn = world.round("worker-1")
    world.clock.move(2)
    return turn
