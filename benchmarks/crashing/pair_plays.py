"""Two plans of one cluster, each about to let its first node go: their pool has one place for both."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

from benchmarks.crashing.operator import Operator
from benchmarks.crashing.plays import STEPS_A_ROUND, WHOLE, in_between, moments, world_of
from benchmarks.crashing.seams import Kind, Turn
from benchmarks.crashing.world import GATES, LONG, NEW, Kept, Shape, World, connected
from fleet.models import Pool
from rollouts.commands.plan_drafts import draft
from rollouts.commands.plan_start import start
from rollouts.commands.stage_drafts import StageDraft
from rollouts.engine.round import run_round
from rollouts.models import Plan, StageKind

OTHER = "a100"  # the driver object of the second plan
PLACES = 1  # of the pool that has the nodes of both
MOST_ROUNDS = 30
PODS_FROM = 10_000  # its operator makes pods of other names


@dataclass
class Beside:
    """A second plan, with the part of the operator that does its work."""

    world: World
    plan: Plan
    operator: Operator

    def round(self, who: str, **planned: Any) -> Turn:
        """Its turns are not those of the first plan."""
        run = partial(run_round, plan_id=self.plan.pk, owner=who, clock=self.world.clock)
        return self.world.live(Turn(who, of="beside", **planned), run)

    def step(self) -> None:
        self.operator.step()


@dataclass(frozen=True)
class Pair:
    """Both at the round that lets a node go, and what each does in it if nothing comes in between."""

    kept: Kept
    pods: int  # that the second operator had made by then
    plan: Plan
    first: Turn
    second: Turn


@lru_cache
def pair_of(shape: Shape) -> Pair:
    world = world_of(shape)
    moment = next(moment for moment in moments(shape, WHOLE) if _releases(moment.writes))
    world.put_back(moment.kept)
    with connected(world):
        beside = Beside(world, _draft(world), operator_of(world, PODS_FROM))
        kept, pods, second = next(_until_it_lets_go(beside))
        world.put_back(kept)
        first = world.round("worker-1")
    return Pair(kept, pods, beside.plan, first, second)


def operator_of(world: World, made: int) -> Operator:
    kept_pod = world.operator.kept_pod
    return Operator(world.line, "NVIDIADriver", OTHER, new_version=NEW, made=made, kept_pod=kept_pod)


def _until_it_lets_go(beside: Beside) -> Iterator[tuple[Kept, int, Turn]]:
    world = beside.world
    for _ in range(MOST_ROUNDS):
        for _ in range(STEPS_A_ROUND):
            beside.step()
        in_between(world)
        kept, pods = world.keep(), beside.operator.made
        turn = beside.round("worker-1")
        if _releases(turn.writes):
            yield kept, pods, turn
        world.clock.move(2)
    beside.plan.refresh_from_db()
    raise RuntimeError(f"The second plan lets nothing go: {beside.plan.state}, {beside.plan.waiting_for}")


def _releases(writes: Any) -> bool:
    return any(write.kind is Kind.RELEASE for write in writes)


def _draft(world: World) -> Plan:
    """The pool has one place from here on."""
    Pool.objects.filter(cluster=world.cluster).update(max_unavailable=PLACES)
    ada, now = world.person("ada"), world.clock()
    size = {"max_unavailable": PLACES, "timeout_s": LONG}
    stages = [
        StageDraft("Canary", StageKind.CANARY, count=1, gate_options=GATES, **size),
        StageDraft("Rest", StageKind.POOL, gate_options=GATES, **size),
    ]
    driver_object = world.cluster.driver_objects.get(name=OTHER)
    plan = draft(
        cluster=world.cluster, title="", driver_object=driver_object, to_version=NEW, stages=stages, actor=ada, now=now
    )
    start(plan, actor=ada, reason="It is time.", expected_revision=plan.revision, now=now)
    return plan
