"""One schedule with an image pull: rounds of it and of its plan, in any order, and what happens to them.

In most of them something happens once before a Job is made or deleted; a quarter cut a round of it anywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any

from benchmarks.crashing import people, pull_people
from benchmarks.crashing.job_reading import JobReading, jobs_at_the_end
from benchmarks.crashing.jobs import NAMESPACE, Fate
from benchmarks.crashing.oracle import Violation
from benchmarks.crashing.plays import Moment
from benchmarks.crashing.pull_plays import PullCourse, pull_moments
from benchmarks.crashing.schedule import Schedule
from benchmarks.crashing.seams import Fault, Kind
from benchmarks.crashing.world import NEW, Shape
from rollouts.lifecycle import PlanState
from rollouts.models import ImagePull
from simulator.kinds import JOB, POD

PULL_LEASE_S = 21.0
# With a sleep of half a minute before it less than the minute after which a Job that lands is no fault: it ends by its
# own deadline then (docs/design/0006-pre-pull.md, objection 7).
ON_ITS_WAY = timedelta(seconds=25)
CUT, RACED = 0.25, 0.85  # up to which part of them
JUST_BEFORE, UNSEEN = 0.5, 0.2
LOST = (Fault.LATE, Fault.LATE, Fault.RESET_AFTER, Fault.TIMEOUT_AFTER)
OF_A_PULL = [fate for fate in Fate if fate is not Fate.CRASHED]
WEIGHT = {Kind.JOB: 4, Kind.JOB_GONE: 1}
LAST = 6
MOST_ROUNDS = 120


class PullSchedule(Schedule):
    def disturb(self, shape: Shape, course: PullCourse) -> None:
        life, which = pull_moments(shape, course), self.chance.random()
        if which < CUT:
            self._cut(life)
        elif which < RACED:
            self._race(life)
        else:
            self._wild(self.chance.choice(life))

    def _begin(self, moment: Moment) -> None:
        self.world.put_back(moment.kept)
        self.world.jobs.fate = self.chance.choice([*[Fate.PULLED] * 4, *OF_A_PULL])

    def _cut(self, life: tuple[Moment, ...]) -> None:
        moment = self.chance.choices(life, [each.seams for each in life])[0]
        self._begin(moment)
        seam = self.chance.randint(1, moment.seams)
        if seam not in moment.gaps or self.chance.random() < 0.5:
            self._pull(dies_at=seam)
        else:
            self._pull(acts={seam: self._overtaken()})
        self._go_on()

    def _race(self, life: tuple[Moment, ...]) -> None:
        """One thing happens before a Job is made or deleted, or to the request itself."""
        chance = self.chance
        where = [(moment, write) for moment in life for write in moment.writes if write.kind in WEIGHT]
        moment, write = chance.choices(where, [WEIGHT[write.kind] for _, write in where])[0]
        self._begin(moment)
        gaps = [gap for gap in moment.gaps if gap < write.seam]
        how = chance.choices(["said", "lost", "slept", "anything"], [4, 3, 4, 3])[0]
        if how == "lost":
            self._pull(faults={write.request: chance.choice(LOST)})
            if chance.random() < 0.5:
                self._event(pull_people.STOPPING)()
        elif how == "slept":
            self._pull(acts={chance.choice(gaps[-1:] if chance.random() < JUST_BEFORE else gaps): self._sleep})
        else:
            event = self._event(pull_people.STOPPING if how == "said" else pull_people.EVENTS)
            if chance.random() < UNSEEN:
                event()
                self._pull()
            else:
                self._pull(acts={chance.choice(gaps[-LAST:] if chance.random() < JUST_BEFORE else gaps): event})
        self._go_on()

    def _event(self, some: Sequence[pull_people.Act] = pull_people.EVENTS) -> Callable[[], object]:
        act = self.chance.choice(some)
        return lambda: act(self.world, self.chance)

    def _go_on(self) -> None:
        """Some rounds without a fault, of the pull or of its plan."""
        for _ in range(self.chance.randint(1, 4)):
            self._pass(2)
            self._step()
            self.chance.choice([self._pull, self._pull, self._round])()

    def _wild(self, moment: Moment) -> None:
        self._begin(moment)
        for _ in range(self.chance.randint(1, 4)):
            self._meanwhile()
            self._pull(**self._planned(moment))

    # What happens

    def _overtaken(self) -> Callable[[], None]:
        happens = [self._event(), self._sleep, self._told_twice, self._step, self._round]
        return self.chance.choices(happens, [10, 5, 2, 2, 3])[0]

    def _sleep(self, *, told: bool = False) -> None:
        """Longer than the lease of a pull, and no longer than what it has in hand may take."""
        if self._depth:
            return
        self._depth += 1
        if self.chance.random() < 0.5:
            self._event()()
        self._pass(PULL_LEASE_S)
        for _ in range(self.chance.randint(1, 6)):
            self._step()
            self._pull("worker-2")
            self._pass(2)
        self._depth -= 1

    def _told_twice(self) -> None:
        if not self._depth:
            self._pull("worker-2")

    def _meanwhile(self) -> None:
        world, chance = self.world, self.chance
        happens: list[Callable[[], object]] = [
            *[self._step] * chance.randint(0, 3),
            *[self._look] * (chance.random() < 0.6),
            *[self._round] * (chance.random() < 0.4),
            *[self._event()] * (chance.random() < 0.4),
            *[world.line.arrive] * (chance.random() < 0.3),
            self._ask_again,
            lambda: self._pass(chance.choice([0.2, 2.0, 2.0, PULL_LEASE_S, 30.0, 70.0])),
        ]
        chance.shuffle(happens)
        for one in happens:
            one()

    def _ask_again(self) -> None:
        if self.chance.random() < 0.3:
            pull_people.ask(self.world, self.chance.randint(1, 3))

    def _pass(self, seconds: float) -> None:
        """What is on its way arrives in time."""
        line = self.world.line
        until = self.world.clock() + timedelta(seconds=seconds)
        if any(until - datetime.fromisoformat(late.at) > ON_ITS_WAY for late in line.late):
            line.arrive()
        self.world.clock.move(seconds)

    def _step(self) -> None:
        super()._step()
        self.world.jobs.step()

    def _pull(self, who: str = "worker-1", **planned: Any) -> None:
        """A round of the pull, where there is one."""
        if (pull := pull_people.in_force(self.world)) is not None:
            self.rounds += 1
            self.world.pull_round(who, pull.pk, **planned)

    # Calm

    def calm_down(self, ending: str) -> None:
        """The pull comes to its end before the plan does, or with it."""
        is_first = self.chance.random() < 0.8
        if is_first:
            self._end_pull()
        self.world.line.arrive()
        if self._plan().state == PlanState.DRAFT:
            self._leave_draft(ending)
        super().calm_down(ending)
        if not is_first:
            self._end_pull()

    def _leave_draft(self, ending: str) -> None:
        people.tidy(self.world)
        people.lift_all(self.world, "ada")
        self.world.rows.look(now=self.world.clock())
        if ending == "abort" or self._plan().to_version != NEW or not pull_people.begin(self.world):
            pull_people.end(self.world, self.chance)

    def _end_pull(self) -> None:
        world = self.world
        for _ in range(MOST_ROUNDS):
            people.tidy_cluster(world)
            people.lift_all(world, "ada")
            self._step()
            world.rows.look(now=world.clock())
            if (pull := pull_people.in_force(world)) is None:
                return
            self._pull()
            pull.refresh_from_db()
            soon = (pull.next_look_at or world.clock()) - world.clock()
            self._pass(max(2.0, soon.total_seconds()))
        self.is_stuck = f"its image pull, with {world.jobs.fate}: {pull.waiting_for}"

    def judge(self) -> Iterator[Violation]:
        yield from super().judge()
        world = self.world
        yield from JobReading(world.entries(), world.words).read()
        if not ImagePull.objects.in_force().exists():
            world.jobs.step()
            yield from jobs_at_the_end(world.store.list(JOB, NAMESPACE)[0], world.store.list(POD, NAMESPACE)[0])
