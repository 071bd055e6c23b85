"""The lives of plans that nobody disturbs: where schedules begin, and which seams there are to be cut at."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from benchmarks.crashing import glances, people
from benchmarks.crashing.rows import keep_database, put_database_back
from benchmarks.crashing.seams import Kind, Write
from benchmarks.crashing.signature import signature, what_follows
from benchmarks.crashing.world import Kept, Shape, World, connected
from rollouts.lifecycle import PLAN_FINAL

SHAPES = (
    Shape(by_policy=False, nodes=3, budget=1, parallel=1),
    Shape(by_policy=True, nodes=3, budget=1, parallel=2, proves=True),
    Shape(by_policy=False, nodes=5, budget=3, parallel=2, dra=3),  # its operator takes fewer than its stages may
    Shape(by_policy=True, nodes=4, budget=2, parallel=3, dra=2),
)
MOST_ROUNDS = 60
STEPS_A_ROUND = 2  # of the operator


@dataclass(frozen=True)
class Course:
    """What becomes of a plan that nobody disturbs, and from where on."""

    verb: str = ""  # what somebody says to it
    at: int = 0  # before which round of the life that goes to its end
    sick_canary: bool = False
    share: int = 1  # of the schedules: as its seams are of all

    @property
    def parts_at(self) -> int:
        """From this round on it is another life."""
        return min(self.at, BEFORE_THE_CANARY) if self.sick_canary else self.at


BEFORE_THE_CANARY = 4
WHOLE = Course(share=4)
COURSES = (
    WHOLE,
    Course("rollback", 6, share=3),
    Course("rollback", 16, share=3),
    Course("abort", 2),
    Course("abort", 15, share=2),
    Course("rollback", 11, sick_canary=True, share=4),
)


@dataclass(frozen=True)
class Moment:
    """The beginning of a round, and what the round does if nothing comes in between."""

    kept: Kept
    seams: int
    gaps: tuple[int, ...]  # those of the seams at which it can be overtaken
    requests: int
    writes: tuple[Write, ...]
    signature: Any
    leads_to: str | None  # what whoever calms down has wanted where he comes by; None: something else happens there
    is_approved: bool = False  # a stage is opening, and somebody has approved it

    @property
    def is_busy(self) -> bool:
        """Something is written to a node or to the object."""
        return any(write.kind is not Kind.LEASE for write in self.writes)

    @property
    def releases(self) -> tuple[int, ...]:
        """Which of its requests take a hold off."""
        return tuple(write.request for write in self.writes if write.kind is Kind.RELEASE)


@lru_cache
def empty() -> bytes:
    """The database before there is anything in it."""
    return keep_database()


@lru_cache
def world_of(shape: Shape) -> World:
    put_database_back(empty())
    return World(shape)


@lru_cache
def moments(shape: Shape, course: Course) -> tuple[Moment, ...]:
    """Of each round: from the first, or from where it parts from the whole life, to the end of the plan."""
    world = world_of(shape)
    begins = moments(shape, WHOLE)[course.parts_at].kept if course is not WHOLE else world.started
    world.put_back(begins)
    with connected(world):
        return tuple(_play(world, course))


def _play(world: World, course: Course) -> Iterator[Moment]:
    if course.sick_canary:
        world.operator.sick.add(world.canary)
    for number in range(course.parts_at, MOST_ROUNDS):
        if number != course.parts_at or course is WHOLE:
            in_between(world)
        if course.verb and number == course.at:
            people.command(world, "ada", course.verb)
        kept, here, leads_to = world.keep(), signature(world), _leads_to(world, course)
        is_approved = glances.is_approved(world.plan.pk)
        turn = world.round("worker-1")
        yield Moment(kept, turn.seams, tuple(turn.gaps), turn.requests, tuple(turn.writes), here, leads_to, is_approved)
        if world.plan_state in PLAN_FINAL:
            return
        world.clock.move(2)
    raise RuntimeError(f"{world.shape} and {course} do not end: {world.plan.waiting_for}")


def _leads_to(world: World, course: Course) -> str | None:
    follows = what_follows(world.plan_state, "go on")
    return follows if not follows or course is WHOLE else None


def in_between(world: World) -> None:
    """The operator goes on, an observer writes what it sees, and an approver takes her time."""
    for _ in range(STEPS_A_ROUND):
        world.operator.step()
    world.rows.look(now=world.clock())
    people.approve(world, after_s=people.APPROVED_AFTER_S)
