"""One schedule with cases and operations: rounds of workers in any order, and what happens to them.

In most of them something happens once before a write; a quarter cut a round anywhere.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from benchmarks.crashing.case_actors import Answers
from benchmarks.crashing.case_oracle import (
    CaseOracle,
    asking_drains,
    pods_past_budgets,
    pulls_of_plans,
    rows_at_the_end,
)
from benchmarks.crashing.case_people import (
    ANYTHING,
    ASKED,
    BROKEN,
    CHANGED,
    EVICTED,
    OFF,
    PULLED,
    PURPOSE_ENDED,
    REPAIRED,
    STEPPED,
    STOPPING,
    TESTED,
    CaseCourse,
    Event,
    look_after,
    remediate,
    tidy,
)
from benchmarks.crashing.case_plays import CaseMoment, case_moments, end_probation, is_quiet, standing
from benchmarks.crashing.case_world import OF_AN_OPERATION, OF_CASES, OF_PULLS, Work, case_ground
from benchmarks.crashing.oracle import Violation
from benchmarks.crashing.seams import Fault, Kind, Write
from maintenance.models import NodeCase
from operations.models import OperationNode

CUT, RACED = 0.3, 0.8  # up to which part of them
JUST_BEFORE, UNSEEN, SLEPT, LOST = 0.6, 0.2, 0.15, 0.15
LAST = 4  # gaps before a write
LEASE_S = 61.0  # of a repair, which is longer than an operation's
WEIGHT = {Kind.EVICTION: 3, Kind.REPAIR: 8, Kind.JOB: 4}
OFTEN_LOST, PURPOSELESS = 0.3, 0.3  # of those that pull an image: a request for a Job, and the plan's need of it
OF_JOBS = (Fault.LATE, Fault.LATE, Fault.RESET_AFTER, Fault.TIMEOUT_AFTER)
LOSSES = (Fault.LATE, Fault.RESET_AFTER, Fault.TIMEOUT_AFTER, Fault.CONFLICT, Fault.FAILING)
OWN = 0.6  # of what comes before a write of a course with events of its own
OUTRUN = 0.2  # of the races in these: a remediator is faster than an operation
MOST_CALM = 150  # ticks


class CaseSchedule:
    def __init__(self, course: CaseCourse, chance: random.Random) -> None:
        self.course, self.chance = course, chance
        self.ground, _ = case_ground()
        self.ground.focus, self.ground.begun_beside = "", []
        self.own = OFF * course.off + BROKEN * course.breakfix + ASKED * course.asked
        self.anything = (*ANYTHING, *self.own)
        self.ground.actors.answers = chance.choice(list(Answers)) if course.by == "webhook" else Answers.TAKES
        self.rounds = 0
        self.is_stuck = ""
        self._depth = 0

    @property
    def world(self) -> Any:
        return self.ground.world

    def disturb(self) -> None:
        life, which = case_moments(self.course), self.chance.random()
        if which < CUT:
            self._cut(life)
        elif which < RACED and self.own and self.chance.random() < OUTRUN:
            self._outrun(life)
        elif which < RACED:
            self._race(life)
        else:
            self._wild(life[0] if self.own and self.chance.random() < 0.5 else self.chance.choice(life))

    def _cut(self, life: Sequence[CaseMoment]) -> None:
        moment = self.chance.choices(life, [each.seams for each in life])[0]
        self.world.put_back(moment.kept)
        seam = self.chance.randint(1, moment.seams)
        if seam not in moment.gaps or self.chance.random() < 0.5:
            self._round(moment.work, dies_at=seam)
        else:
            self._round(moment.work, acts={seam: self._event(self.anything)})
        self._go_on()

    def _race(self, life: Sequence[CaseMoment]) -> None:
        """One thing happens before a write to a node or a pod, or to the request itself."""
        chance = self.chance
        where = [(moment, write) for moment in life for write in moment.writes if write.kind is not Kind.LEASE]
        if not where:
            self._wild(chance.choice(life))
            return
        moment, write = chance.choices(where, [WEIGHT.get(write.kind, 2) for _, write in where])[0]
        self.world.put_back(moment.kept)
        self.ground.focus = write.node
        gaps = [gap for gap in moment.gaps if gap < write.seam] or [1]
        if chance.random() < (OFTEN_LOST if self.course.pulled else LOST):
            losses = OF_JOBS if self.course.pulled else LOSSES
            self._round(moment.work, faults={write.request: chance.choice(losses)})
            self._event(STOPPING)()
        elif chance.random() < SLEPT:
            self._round(moment.work, acts={chance.choice(gaps): lambda: self._sleep(moment.work)})
        else:
            event = self._event(self._before(write))
            if chance.random() < UNSEEN:
                event()
                if self.course.of_plan:
                    self._round(Work(OF_PULLS))
                self._round(moment.work)
            else:
                at = gaps[-LAST:] if chance.random() < JUST_BEFORE else gaps
                self._round(moment.work, acts={chance.choice(at): event})
        self._go_on()

    def _outrun(self, life: Sequence[CaseMoment]) -> None:
        """A remediator begins on a node, and is seen at work, just before an operation begins there."""
        first = {moment.work: moment for moment in reversed(life) if moment.work.kind == OF_AN_OPERATION}
        moment = self.chance.choice(list(first.values()))
        self.world.put_back(moment.kept)
        for row in OperationNode.objects.filter(operation=moment.work.key):
            remediate(self.ground, row.node_name)
        self._round(moment.work)
        self._go_on()

    def _before(self, write: Write) -> Sequence[Event]:
        """Returns what a write of this kind rests on."""
        if self.course.of_plan and self.chance.random() < PURPOSELESS:
            return PURPOSE_ENDED
        if self.own and self.chance.random() < OWN:
            return self.own
        if self.course.pulled and write.kind in {Kind.JOB, Kind.JOB_GONE}:
            return PULLED
        if self.chance.random() < 0.4:
            return STEPPED if self.course.is_automatic else STOPPING
        return {Kind.EVICTION: EVICTED, Kind.REPAIR: REPAIRED, Kind.JOB: TESTED}.get(write.kind, CHANGED)

    def _wild(self, moment: CaseMoment) -> None:
        self.world.put_back(moment.kept)
        for _ in range(self.chance.randint(2, 6)):
            self._meanwhile()
            for work in self._some_due():
                self._round(work, **self._planned())

    def _some_due(self) -> list[Work]:
        due = self.ground.due()
        return self.chance.sample(due, self.chance.randint(1, len(due)))

    def _planned(self) -> dict[str, Any]:
        chance, planned = self.chance, {}
        if chance.random() < 0.3:
            planned["dies_at"] = chance.randint(1, 30)
        if chance.random() < 0.5:
            planned["acts"] = {chance.randint(1, 30): self._event(self.anything)}
        if chance.random() < 0.3:
            planned["faults"] = {chance.randint(1, 15): chance.choice(list(Fault))}
        return planned

    def _meanwhile(self) -> None:
        chance = self.chance
        happens: list[Callable[[], object]] = [
            self.ground.step,
            *[self._event(self.anything)] * (chance.random() < 0.7),
            *[lambda: look_after(self.ground, self.course)] * (chance.random() < 0.6),
            *[self.world.line.arrive] * (chance.random() < 0.3),
            lambda: self.world.clock.move(chance.choice([1, 5, 15, 15, 60, 600, 3000])),
        ]
        chance.shuffle(happens)
        for act in happens:
            act()

    def _event(self, some: Sequence[Event]) -> Callable[[], object]:
        act = self.chance.choice(some)
        return lambda: act(self.ground, self.chance)

    def _sleep(self, work: Work) -> None:
        """Longer than the lease: another worker goes on with it, and then this one wakes."""
        if self._depth:
            return
        self._depth += 1
        if self.chance.random() < 0.5:
            self._event(self.anything)()
        for _ in range(self.chance.randint(1, 3)):
            self.world.clock.move(LEASE_S)
            self.ground.step()
            self._round(work, "worker-2")
        self._depth -= 1

    def _go_on(self) -> None:
        for _ in range(self.chance.randint(1, 3)):
            self.world.clock.move(self.course.between_s)
            self.ground.step()
            if self.chance.random() < 0.5:
                look_after(self.ground, self.course)
            for work in self.ground.due():
                self._round(work)

    def _round(self, work: Work, who: str = "worker-1", **planned: Any) -> None:
        self.rounds += 1
        self.ground.round(work, who, **planned)

    # Calm

    def calm_down(self) -> None:
        """Nothing unforeseen happens any more, and people look after the nodes, until all are in service again."""
        if self.course.pulled:
            self.world.line.arrive()  # within the minute for which somebody waits for it
        self.world.clock.move(LEASE_S)
        for number in range(MOST_CALM):
            tidy(self.ground)
            self.ground.step()
            look_after(self.ground, self.course)
            for work in self.ground.due():
                self._round(work)
            self.world.clock.move(self.course.between_s)
            if is_quiet():
                self.ground.mend_all()  # what nobody has acted on is over, too
                if number > 2:
                    break
        else:
            self.is_stuck = standing()
            return
        for _ in range(3):
            look_after(self.ground, self.course)
            end_probation(self.ground)
            self._round(Work(OF_CASES))
        tidy(self.ground)
        if NodeCase.objects.open().exists():
            self.is_stuck = standing()

    def judge(self) -> Iterator[Violation]:
        world = self.world
        yield from CaseOracle(
            world.entries(),
            world.words,
            world.first_nodes,
            past=pods_past_budgets(),
            of_plans=pulls_of_plans(),
            asking=asking_drains(),
        ).read()
        for bug in world.bugs:
            yield Violation("bugs", bug)
        if self.is_stuck:
            yield Violation("stuck_cases", self.is_stuck)
            return
        yield from rows_at_the_end(self.ground)
