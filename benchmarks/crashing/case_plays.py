"""The lives of cases and operations that nobody disturbs: where schedules with them begin."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from benchmarks.crashing.case_people import CaseCourse, begin, look_after
from benchmarks.crashing.case_world import CaseWorld, Work, case_ground, in_its_place
from benchmarks.crashing.jobs import Fate
from benchmarks.crashing.seams import Write
from benchmarks.crashing.world import Kept
from maintenance.lifecycle import PROBATION_FOR, CaseState
from maintenance.models import NodeCase, Repair
from operations.models import Operation, OperationNode, Quarantine

COURSES = (
    CaseCourse(cases=1, first="quarantine"),
    CaseCourse(cases=1, by="nvsentinel-reboot"),
    CaseCourse(cases=3, first="quarantine", by=""),
    CaseCourse(drained=2),
    CaseCourse(faults=1, by="nvsentinel-reboot"),
    CaseCourse(faults=3, by=""),
    CaseCourse(cases=1, first="quarantine", is_overridden=True),
    CaseCourse(cases=2, is_tested=True),
    CaseCourse(cases=1, by="webhook", is_tested=True),
    CaseCourse(cases=1, by="metal3-reboot"),
    CaseCourse(faults=1, is_automatic=True),
    CaseCourse(new=2, is_overridden=True),
    CaseCourse(off=1),
    CaseCourse(breakfix=2),
    CaseCourse(asked=2),
)
PULLS = (
    CaseCourse(pulled=2),
    CaseCourse(pulled=2, of_plan=True),
    CaseCourse(pulled=1, of_plan=True, fate=Fate.NOT_FOUND),
    CaseCourse(pulled=3, drained=1),
)
LEAST_TICKS, MOST_TICKS = 8, 60  # a finding settles first


@dataclass(frozen=True)
class CaseMoment:
    """The beginning of a worker's round, and what the round does if nothing comes in between."""

    kept: Kept
    work: Work
    seams: int
    gaps: tuple[int, ...]
    requests: int
    writes: tuple[Write, ...]

    @property
    def is_busy(self) -> bool:
        return self.seams > 0


@lru_cache
def case_moments(course: CaseCourse) -> tuple[CaseMoment, ...]:
    """Returns the rounds in which something happens."""
    ground, kept = case_ground()
    ground.world.put_back(kept)
    with in_its_place(ground):
        begin(ground, course)
        return tuple(moment for moment in _play(ground, course) if moment.is_busy)


def _play(ground: CaseWorld, course: CaseCourse) -> Iterator[CaseMoment]:
    for number in range(MOST_TICKS):
        ground.step()
        look_after(ground, course)
        for work in ground.due():
            kept = ground.world.keep()
            turn = ground.round(work)
            yield CaseMoment(kept, work, turn.seams, tuple(turn.gaps), turn.requests, tuple(turn.writes))
        ground.world.clock.move(course.between_s)
        if number > LEAST_TICKS and is_quiet():
            return
    raise RuntimeError(f"{course} does not end: {standing()}")


def is_quiet() -> bool:
    """Returns whether every node is in service again, its case on probation at most."""
    busy = NodeCase.objects.open().exclude(state=CaseState.PROBATION)
    return not (Operation.objects.in_progress().exists() or Quarantine.objects.in_force().exists() or busy.exists())


def standing() -> str:
    cases = [f"{case.node_name} {case.state}: {case.state_reason}" for case in NodeCase.objects.open()]
    its = OperationNode.objects.unfinished().select_related("operation")
    operations = [
        f"{row.operation.mark} {row.operation.kind}, {row.node_name} {row.state}: {row.reason}" for row in its
    ]
    rows = [f"{row.node_name} is quarantined by {row.operation.mark}" for row in Quarantine.objects.in_force()]
    repairs = [f"{each} by {each.by}: {each.answer or each.says}" for each in Repair.objects.open()]
    return "; ".join([*cases, *operations, *rows, *repairs])


def end_probation(ground: CaseWorld) -> None:
    """Three days without a fault."""
    ground.mend_all()
    ground.world.clock.move(PROBATION_FOR.total_seconds() + 1)
    ground.look()
