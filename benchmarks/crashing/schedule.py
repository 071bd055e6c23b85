"""One schedule: a plan somewhere in its life, what happens to it from there, and how people bring it to its end."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from functools import partial
from operator import attrgetter
from typing import Any

from benchmarks.crashing import people, taking_back, unseen
from benchmarks.crashing.job_reading import test_jobs_at_the_end
from benchmarks.crashing.jobs import NAMESPACE
from benchmarks.crashing.oracle import Reading, Violation, at_the_end
from benchmarks.crashing.plays import STEPS_A_ROUND, Moment
from benchmarks.crashing.rows import keep_database, put_database_back
from benchmarks.crashing.seams import Fault, Kind, Write, once_decided
from benchmarks.crashing.signature import signature, what_follows
from benchmarks.crashing.words import ENGINE, Word
from benchmarks.crashing.world import NEW, OLD, Shape, World
from operations.models import Disruption
from rollouts.lifecycle import PLAN_FINAL, TargetState
from rollouts.models import Hold, Plan, Target, TestJob
from simulator.kinds import JOB, LEASE, NODE
from simulator.refusals import Refused

PLAN_LEASE_S = 16.0
SENT_LATE, JUST_BEFORE = 0.2, 0.6  # of the races
BEFORE_ITS_ROUND = 0.5  # of what befalls a node that is about to go
ANOTHER_BREAKS = 0.2  # of what befalls nodes
REJECTED = 0.25  # of what is taken back
AT_THE_LAST = 0.25  # of the releases that are raced: what is asked again just before the label
UNSEEN, SELDOM_UNSEEN = {Kind.VERSION: 0.6}, 0.25
SAID, SELDOM_SAID = {Kind.RELEASE: 0.5}, 0.15  # of what comes before a write
RESTS, MOSTLY_RESTS = {Kind.VERSION: 0.85}, 0.6
SLEPT, SELDOM_SLEPT = {Kind.HOLD: 0.5, Kind.STATE: 0.5}, 0.2  # whatever is written, its worker must have the turn
TOLD_ASLEEP = 0.6  # what is wanted is another thing when he wakes
WEIGHT = {Kind.RELEASE: 4, Kind.VERSION: 4, Kind.HOLD: 2}  # what cannot be taken back, and what is done most
LAST = 4  # gaps before a write: between what is asked last and the write itself
BEGINS = 3  # gaps at the end of a round in which a stage begins: around the move itself
TIRED_AFTER, MOST_CALM = 30, 70  # rounds
TESTS_TAKE = 90  # rounds more: each node is tested, and a Job that never came is made again after two minutes


class Schedule:
    def __init__(self, world: World, chance: random.Random, ended: set[tuple[Shape, str, Any]]) -> None:
        self.world, self.chance, self.ended = world, chance, ended
        self.rounds = 0
        self.is_stuck = ""
        self._depth = 0
        self._passed: list[Any] = []

    # Disturbed

    def cut(self, moment: Moment, seam: int) -> None:
        """One thing happens at this seam: the worker dies, or somebody is faster."""
        self.world.put_back(moment.kept)
        if seam not in moment.gaps or self.chance.random() < 0.5:
            self._round(dies_at=seam)
        else:
            self._round(acts={seam: self._overtaken()})

    def race(self, life: tuple[Moment, ...]) -> None:
        """One thing happens before a write: just before it, in its round, or before that, where no observer looked."""
        world, chance = self.world, self.chance
        kinds = sorted({write.kind for moment in life for write in moment.writes})
        kind = chance.choices(kinds, [WEIGHT.get(kind, 1) for kind in kinds])[0]
        where = [(moment, write) for moment in life for write in moment.writes if write.kind is kind]
        moment, write = chance.choice(where)
        world.put_back(moment.kept)
        if kind is Kind.RELEASE and chance.random() < SENT_LATE:
            self._send_late(write)
            return
        gaps = [gap for gap in moment.gaps if gap < write.seam]
        if kind is Kind.RELEASE and chance.random() < AT_THE_LAST:
            last = chance.choice([self._freeze, partial(unseen.take_over, world, write.node)])
            self._round(acts={chance.choice(gaps[-LAST:]): last})
            self._go_on()
            return
        if chance.random() < SLEPT.get(kind, SELDOM_SLEPT):
            sleep = partial(self._sleep, told=chance.random() < TOLD_ASLEEP)
            self._round(acts={chance.choice(gaps[-1:] if chance.random() < JUST_BEFORE else gaps): sleep})
            return
        event = self._event(kind)
        if chance.random() < UNSEEN.get(kind, SELDOM_UNSEEN):
            event()
            self._round()
        else:
            self._round(acts={chance.choice(gaps[-LAST:] if chance.random() < JUST_BEFORE else gaps): event})
        self._go_on()

    def _freeze(self) -> None:
        people.freeze(self.world, self.chance, "bob")

    def _go_on(self) -> None:
        for _ in range(self.chance.randint(1, 3)):
            self.world.clock.move(2)
            self._step()
            self._step()
            self._look()
            self._round()

    def befall(self, life: tuple[Moment, ...]) -> None:
        """A node changes that its row says may go: before its round looks, or once it has decided.

        Or another one is broken, which everybody knows: that takes one of the places.
        """
        chance = self.chance
        releases = [(moment, write) for moment in life for write in moment.writes if write.kind is Kind.RELEASE]
        moment, write = chance.choice(releases)
        self.world.put_back(moment.kept)
        event = partial(unseen.choose(chance), self.world, write.node)
        if chance.random() < ANOTHER_BREAKS:
            self._break_another(write.node)
            self._round()
        elif chance.random() < BEFORE_ITS_ROUND:
            event()
            self._round()
        else:
            self._round(acts={chance.choice(once_decided(moment.gaps, moment.writes, write.seam)): event})
        self._go_on()

    def _break_another(self, node: str) -> None:
        world = self.world
        people.cordon(world, self.chance.choice(sorted(world.operator.nodes().keys() - {node})))
        world.rows.look(now=world.clock())
        world.say(ENGINE, world.state(), is_whole=False)

    def take_back(self, life: tuple[Moment, ...]) -> None:
        """Before a round that goes on: the approval counts no more, a window closes, or the cluster is only watched.

        Or in the round in which a stage begins, somebody else rejects it.
        """
        world, chance = self.world, self.chance
        if chance.random() < REJECTED:
            self._reject(chance.choice([each for each in life if each.is_approved]))
            return
        begins, take = chance.choices(
            [
                (attrgetter("is_approved"), chance.choice(taking_back.APPROVALS)),
                (attrgetter("releases"), lambda world: people.close_window(world, chance, "bob")),
                (attrgetter("is_busy"), taking_back.watch_only),
            ],
            [5, 3, 2],
        )[0]
        world.put_back(chance.choice([each for each in life if begins(each)]).kept)
        take(world)
        self._round()
        self._go_on()

    def _reject(self, moment: Moment) -> None:
        self.world.put_back(moment.kept)
        gaps = moment.gaps[-BEGINS:] if self.chance.random() < JUST_BEFORE else moment.gaps
        self._round(acts={self.chance.choice(gaps): partial(people.reject, self.world)})
        self._go_on()

    def _event(self, kind: Kind) -> Callable[[], object]:
        """What comes before a write of this kind: a word that stops it, a change of what it rests on, or anything."""
        events = [*people.EVENTS]
        if self.chance.random() < SAID.get(kind, SELDOM_SAID):
            events = [*people.STOPPING]
        elif self.chance.random() < RESTS.get(kind, MOSTLY_RESTS):
            events = [*people.RESTS_ON.get(kind, events)]
        return partial(self.chance.choice(events), self.world, self.chance)

    def _send_late(self, write: Write) -> None:
        """A release that its sender gave up: somebody says stop, a worker sees to that, and then it arrives."""
        world, chance = self.world, self.chance
        self._round(faults={write.request: Fault.LATE})
        people.say_stop(world, chance)
        for _ in range(2):
            world.clock.move(PLAN_LEASE_S)
            world.rows.look(now=world.clock())
            self._round()
        world.line.arrive()

    def go_wild(self, moment: Moment) -> None:
        self.world.put_back(moment.kept)
        old = (keep_database(), self._lease()) if self.chance.random() < 0.06 else None
        for _ in range(self.chance.randint(1, 4)):
            if self._is_over():
                break
            self._meanwhile()
            self._round(**self._planned(moment))
        if old is not None and not self._is_over():
            self._put_old_copy_back(*old)

    def _put_old_copy_back(self, old: bytes, lease: Any) -> None:
        """The database is restored from a copy of before; somebody had halted the plan since."""
        world = self.world
        people.command(world, "ada", "halt")
        world.clock.move(PLAN_LEASE_S)
        self._round()
        if self._lease() == lease:
            return  # Nothing was written since: no count can tell the copy from what it is a copy of.
        put_database_back(old)
        world.is_old_copy = True
        world.rows.seen.clear()
        world.say("ada", "old copy")
        for _ in range(3):
            self._step()
            world.rows.look(now=world.clock())
            self._round()

    def _lease(self) -> Any:
        try:
            return self.world.store.get(LEASE, "quarterdeck", "quarterdeck")["spec"]["leaseTransitions"]
        except Refused:
            return None

    def _planned(self, moment: Moment) -> dict[str, Any]:
        """Of one round: where it dies, who overtakes it, which of its requests fail."""
        chance, seams = self.chance, moment.seams + 12
        planned: dict[str, Any] = {}
        if chance.random() < 0.3:
            planned["dies_at"] = chance.randint(1, seams)
        if chance.random() < 0.55:
            planned["acts"] = {chance.randint(1, seams): self._overtaken() for _ in range(chance.choice([1, 1, 2]))}
        if chance.random() < 0.3:
            failing = {chance.randint(1, moment.requests + 3) for _ in range(chance.choice([1, 1, 1, 3]))}
            planned["faults"] = {number: chance.choice(list(Fault)) for number in failing}
        return planned

    def _overtaken(self) -> Callable[[], None]:
        """What somebody else does while this worker is between two things."""
        chance = self.chance
        return chance.choices(
            [
                lambda: people.anything(self.world, chance),
                lambda: people.behind_its_back(self.world, chance),
                self._sleep,
                self._told_twice,
                self._step,
            ],
            [10, 4, 5, 2, 2],
        )[0]

    def _sleep(self, *, told: bool = False) -> None:
        """Longer than the lease: others go on with the plan, and then this worker wakes.

        `told`: somebody gives it up or turns it back, so that the others do another thing than he had in hand.
        """
        if self._depth:
            return
        self._depth += 1
        world, chance = self.world, self.chance
        if told:
            people.command(world, "bob", chance.choice(["abort", "abort", "rollback", "halt"]))
        elif chance.random() < 0.5:
            people.anything(world, chance)
        for _ in range(chance.randint(1, 3)):
            world.clock.move(PLAN_LEASE_S)
            if chance.random() < 0.7:
                self._step()
            world.rows.look(now=world.clock())
            self._round("worker-2")
        self._depth -= 1

    def _told_twice(self) -> None:
        """The same message once more, to another worker, while the first has the lease."""
        if not self._depth:
            self._round("worker-2")

    def _meanwhile(self) -> None:
        """Between two rounds, in any order. Messages come late, in part, or not at all."""
        world, chance = self.world, self.chance
        happens = [
            *[self._step] * chance.randint(0, 3),
            *[self._look] * (chance.random() < 0.8),
            *[lambda: people.behind_its_back(world, chance)] * (chance.random() < 0.35),
            *[lambda: people.anything(world, chance)] * (chance.random() < 0.3),
            *[world.line.arrive] * (chance.random() < 0.3),
            lambda: world.clock.move(chance.choice([0.2, 2.0, 2.0, PLAN_LEASE_S, 30.0, 100.0])),
        ]
        chance.shuffle(happens)
        for one in happens:
            one()

    def _look(self) -> None:
        """What an observer writes of the cluster: mostly all that there is."""
        upto = 1.0 if self.chance.random() < 0.75 else self.chance.random()
        self.world.rows.look(now=self.world.clock(), upto=upto)

    def _step(self) -> None:
        self.world.operator.step()

    def _round(self, who: str = "worker-1", **planned: Any) -> None:
        self.rounds += 1
        self.world.round(who, **planned)

    # Calm

    def calm_down(self, ending: str) -> None:
        """Nothing unforeseen happens any more, and people look after the plan, until it is over.

        One that ends only because they are tired of it stands still: they give it up, whatever they had wanted.
        """
        world = self.world
        world.clock.move(PLAN_LEASE_S)
        tests_take = TESTS_TAKE if self.world.shape.proves else 0
        tired_after = TIRED_AFTER + tests_take
        for number in range(MOST_CALM + tests_take):
            if self._is_over():
                break
            people.tidy(world)
            people.put_version_right(world)
            for _ in range(STEPS_A_ROUND):
                self._step()
            world.rows.look(now=world.clock())
            if number == tired_after and ending != "abort":
                self.is_stuck = self._standing()
            people.on_call(world, ending, tired=number >= tired_after)
            here = (world.shape, what_follows(world.plan_state, ending), signature(world))
            if number < tired_after and here in self.ended and not world.bugs:
                return
            self._passed.append(here)
            self._round()
            world.clock.move(2)
        if not self._is_over():
            self.is_stuck = self._standing()
        elif number < tired_after:
            self.ended.update(self._passed)

    def _is_over(self) -> bool:
        return self.world.plan_state in PLAN_FINAL

    def _standing(self) -> str:
        plan = self._plan()
        return f"{plan.state}: {plan.waiting_for}"

    def _plan(self) -> Plan:
        return Plan.objects.get(pk=self.world.plan.pk)

    # Judged

    def reading(self) -> Reading:
        world, shape = self.world, self.world.shape
        return Reading(
            world.entries(), world.words, world.first_nodes, selector=world.selector, version=OLD, new=NEW,
            budget=shape.budget, parallel=shape.parallel, canary=world.canary, asks=True, driver_object=world.called,
            offered=world.first_offered,
        )  # fmt: skip

    def judge(self) -> Iterator[Violation]:
        world, reading = self.world, self.reading()
        yield from reading.read()
        if self.is_stuck:
            yield Violation("stuck_plans", self.is_stuck)
        for bug in world.bugs:
            yield Violation("bugs", bug)
        plan = self._plan()
        if not plan.waiting_for and not plan.reason:
            yield Violation("stuck_plans", f"Nothing is said of why it is {plan.state}.")
        if plan.is_final:
            yield from reading.opt_outs_at_the_end()
            yield from self._judge_end(plan, reading)

    def _judge_end(self, plan: Plan, reading: Reading) -> Iterator[Violation]:
        world = self.world
        nodes = world.store.list(NODE)[0]
        stages = Target.objects.filter(stage__plan=plan)
        targets = {target.node_uid for target in stages.exclude(state=TargetState.EXCLUDED)}
        left_out = {node["metadata"]["uid"] for node in nodes} - targets
        yield from at_the_end(
            nodes, state=plan.state, mark=plan.mark, version=world.operator.driver_spec()["version"],
            left_out=left_out, cordoned=set(self._cordoned()), offered=world.operator.dra.offered(),
            left_unseen=reading.left_unseen, unproven=self._unproven(plan),
        )  # fmt: skip
        if plan.lease_until > world.clock():
            yield Violation("leaked_leases", f"Its lease is {plan.lease_owner}'s until {plan.lease_until}.")
        if held := Hold.objects.in_force().filter(plan=plan).count():
            yield Violation("leaked_leases", f"{held} nodes are still taken by it.")
        if not world.is_old_copy:  # of the Jobs that came after it, it knows none: they end by their deadline
            yield from test_jobs_at_the_end(world.store.list(JOB, NAMESPACE)[0])
        if places := Disruption.objects.in_force().filter(taken_by=plan.mark).count():
            yield Violation("leaked_leases", f"{places} places in the ledger are still taken by it.")

    def _unproven(self, plan: Plan) -> set[str]:
        """UIDs of nodes whose last test Job failed."""
        told = TestJob.objects.filter(plan=plan).order_by("pk").values_list("node_uid", "outcome")
        return {uid for uid, outcome in dict(told).items() if outcome == "failed"}

    def _cordoned(self) -> Iterator[str]:
        """By somebody who is not the operator, at any time: that is theirs to undo."""
        for entry in self.world.entries():
            body = entry.get("body")
            is_cordon = isinstance(body, dict) and "unschedulable" in (body.get("spec") or {})
            if is_cordon and entry["user_agent"] != "gpu-operator":
                yield str(entry["path"]).rsplit("/", 1)[-1]


def story(world: World) -> Iterator[str]:
    """Everything that was said, and everything that the API server was asked, in order."""
    words = list(world.words)
    for number, entry in enumerate(world.entries()):
        while words and words[0].after <= number:
            yield _told(words.pop(0))
        body = f" {entry['body']}" if "body" in entry else ""
        yield f"{entry['at'][11:]} {entry['user_agent']}: {entry['method']} {entry['path']} {entry['code']}{body}"
    yield from map(_told, words)


def _told(word: Word) -> str:
    cut = "" if word.is_whole else " (cut short)"
    return f"{word.at[11:]} --- {word.who}: {word.verb}{cut}"
