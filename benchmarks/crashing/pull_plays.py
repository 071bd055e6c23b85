"""The lives of image pulls that nobody disturbs: where schedules with one begin."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from benchmarks.crashing import pull_people
from benchmarks.crashing.jobs import Fate
from benchmarks.crashing.plays import WHOLE, Moment, moments, world_of
from benchmarks.crashing.world import Shape, World, connected

MOST_ROUNDS = 30


@dataclass(frozen=True)
class PullCourse:
    """Of which plan an image is pulled, and what becomes of it."""

    at: int = -1  # the round of a plan's whole life in which it is asked for; -1: of its draft
    nodes_each: int = 1
    fate: Fate = Fate.PULLED
    cancelled_at: int = 0  # before which round; 0: it is not


PULLS = (
    PullCourse(nodes_each=2),
    PullCourse(at=3),
    PullCourse(fate=Fate.NOT_FOUND, nodes_each=2, cancelled_at=2),
    PullCourse(at=12, nodes_each=3, fate=Fate.NOT_FOUND),
)


@lru_cache
def pull_moments(shape: Shape, course: PullCourse) -> tuple[Moment, ...]:
    world = world_of(shape)
    world.put_back(world.drafted if course.at < 0 else moments(shape, WHOLE)[course.at].kept)
    with connected(world):
        return tuple(_play(world, course))


def _play(world: World, course: PullCourse) -> Iterator[Moment]:
    world.jobs.fate = course.fate
    pull_people.ask(world, course.nodes_each)
    for number in range(MOST_ROUNDS):
        pull = pull_people.in_force(world)
        if pull is None:
            return
        if number and number == course.cancelled_at:
            pull_people.call_off(world)
        kept = world.keep()
        turn = world.pull_round("worker-1", pull.pk)
        yield Moment(kept, turn.seams, tuple(turn.gaps), turn.requests, tuple(turn.writes), None, None)
        world.clock.move(2)
        world.jobs.step()
    raise RuntimeError(f"{world.shape} and {course} do not end")
