"""One schedule with two plans: both want the last place of their pool, and one is faster while the other decides."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.crashing.oracle import Reading, Violation, at_the_end
from benchmarks.crashing.pair_plays import OTHER, PLACES, Beside, Pair, operator_of
from benchmarks.crashing.plays import STEPS_A_ROUND
from benchmarks.crashing.schedule import PLAN_LEASE_S, Schedule
from benchmarks.crashing.seams import Kind, Turn, once_decided
from benchmarks.crashing.world import NEW, OLD
from operations.models import Disruption
from rollouts.commands import plan_control
from rollouts.models import Hold, Plan
from simulator.kinds import NODE

DECIDED = 0.8  # of those that are overtaken: after its decision, before its write
MOST_ROUNDS = 60


class PairSchedule(Schedule):
    def disturb(self, pair: Pair) -> None:
        self.world.put_back(pair.kept)
        self.beside = Beside(self.world, pair.plan, operator_of(self.world, pair.pods))
        chance = self.chance
        is_first = chance.random() < 0.5
        at = self._gap(pair.first if is_first else pair.second)
        if chance.random() < 0.2:  # it dies there, and the other one comes to what it has left
            self._let(dies_at=at, is_first=is_first)
            self._let(is_first=not is_first)
        else:
            self._let(acts={at: lambda: self._go_ahead(is_first=not is_first)}, is_first=is_first)
        for _ in range(chance.randint(1, 2)):
            self._pass()
            self._let(is_first=chance.random() < 0.5)

    def _gap(self, turn: Turn) -> int:
        """Somewhere before its first release, and mostly after it has decided: when it asks for the Lease."""
        release = next(write.seam for write in turn.writes if write.kind is Kind.RELEASE)
        gaps = [gap for gap in turn.gaps if gap < release]
        late = once_decided(turn.gaps, turn.writes, release)
        return self.chance.choice(late if late and self.chance.random() < DECIDED else gaps)

    def _go_ahead(self, *, is_first: bool) -> None:
        for _ in range(self.chance.randint(1, 2)):
            self._let("worker-2", is_first=is_first)

    def _let(self, who: str = "worker-1", *, is_first: bool, **planned: object) -> None:
        if is_first:
            self._round(who, **planned)
        else:
            self.rounds += 1
            self.beside.round(who, **planned)

    def _pass(self) -> None:
        self.world.clock.move(2)
        for _ in range(STEPS_A_ROUND):
            self._step()
        self.world.rows.look(now=self.world.clock())

    def _step(self) -> None:
        super()._step()
        self.beside.step()

    # Calm

    def calm_down(self, ending: str = "abort") -> None:
        """Both are given up, the second one first: how a plan goes on to its end is other schedules'."""
        world = self.world
        world.clock.move(PLAN_LEASE_S)
        plan = self._second()
        if not plan.is_final:
            plan_control.abort(plan, actor=world.person("bob"), reason="A schedule wants it.", now=world.clock())
        for _ in range(MOST_ROUNDS):
            plan = self._second()
            if plan.is_final:
                super().calm_down("abort")
                return
            self._pass()
            self._let(is_first=False)
        self.is_stuck = f"the second plan, {plan.state}: {plan.waiting_for}"

    def _second(self) -> Plan:
        return Plan.objects.select_related("cluster").get(pk=self.beside.plan.pk)

    # Judged

    def judge(self) -> Iterator[Violation]:
        yield from super().judge()
        reading = self._read_second()
        yield from reading.read()
        first = self.reading()
        first.read()
        yield from over_places([*first.out, *reading.out], PLACES)
        yield from self._judge_second_end(reading)

    def _read_second(self) -> Reading:
        world, operator = self.world, self.beside.operator
        selector = dict(operator.daemonset()["spec"]["template"]["spec"]["nodeSelector"])
        parallel = operator.driver_spec()["upgradePolicy"]["maxParallelUpgrades"]
        canary = self.beside.plan.stages.get(index=0).targets.get().node_name
        return Reading(
            world.entries(), (), world.first_nodes, selector=selector, version=OLD, new=NEW, budget=PLACES,
            parallel=parallel, canary=canary, asks=False, driver_object=OTHER, offered=world.first_offered,
        )  # fmt: skip

    def _judge_second_end(self, reading: Reading) -> Iterator[Violation]:
        plan, operator = self._second(), self.beside.operator
        if not plan.is_final:
            return
        nodes = [node for node in self.world.store.list(NODE)[0] if node["metadata"]["name"] in operator.nodes()]
        yield from at_the_end(
            nodes, state=plan.state, mark=plan.mark, version=operator.driver_spec()["version"], left_out=set(),
            cordoned=set(self._cordoned()), offered=operator.dra.offered(), left_unseen=reading.left_unseen,
        )  # fmt: skip
        for rows in (Hold.objects.filter(plan=plan), Disruption.objects.filter(taken_by=plan.mark)):
            if left := rows.in_force().count():
                yield Violation("leaked_leases", f"{left} rows of {rows.model.__name__} are still the second plan's.")


def over_places(out: list[tuple[str, str, bool]], places: int) -> Iterator[Violation]:
    """`out`: when, which node, and whether it was let go then or was back: of all the plans that share the places."""
    going: set[str] = set()
    for at, name, is_out in sorted(out):
        (going.add if is_out else going.discard)(name)
        if is_out and len(going) > places:
            told = ", ".join(sorted(going))
            yield Violation("over_budget", f"{name} at {at}: {told} of two plans, and their pool has {places}.")
