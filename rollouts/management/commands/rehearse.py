import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from rollouts.models import Plan
from rollouts.node_order.node_selection import FACTORS, bound_on_failure_rate
from rollouts.rehearsal.faults import FAULTS
from rollouts.rehearsal.run import Rehearsal, rehearse
from rollouts.rehearsal.virtual_plan import NothingToRehearse, VirtualPlan, virtual_plan
from wording.durations import spell
from wording.lists import names
from wording.numbers import count

TOLD_EVERY_S = 2.0


class Command(BaseCommand):
    help = "Play a plan in virtual time on its present nodes, with its own gates. Nothing in a cluster is touched."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("plan", type=int, help="number of the plan")
        parser.add_argument("--fault", choices=FAULTS, help="fault of the new driver; default: it has none")
        parser.add_argument("--seed", type=int, default=1, help="chooses the nodes with the fault (1)")

    def handle(self, *args: Any, **given: Any) -> None:
        plan = Plan.objects.select_related("cluster").filter(pk=given["plan"]).first()
        if plan is None:
            raise CommandError(f"There is no plan {given['plan']}.")
        now, fault = timezone.now(), FAULTS.get(given["fault"] or "")
        try:
            played = virtual_plan(plan, fault, seed=given["seed"], now=now)
        except NothingToRehearse as nothing:
            raise CommandError(f"{nothing} Look at the draft: it names why each node is left out.") from nothing
        outcome = rehearse(played.fleet, played.stages, begins=now, tell=self._progress())
        for line in _lines(played, outcome):
            self.stdout.write(line)

    def _progress(self) -> Callable[[timedelta], None]:
        """Returns what shows the virtual time of a long rehearsal in a terminal, every two seconds."""
        next_at = time.monotonic() + TOLD_EVERY_S

        def tell(spent: timedelta) -> None:
            nonlocal next_at
            if time.monotonic() >= next_at and self.stderr.isatty():
                next_at = time.monotonic() + TOLD_EVERY_S
                self.stderr.write(f"Rehearsed {spell(spent)} of virtual time …")

        return tell


def _lines(played: VirtualPlan, outcome: Rehearsal) -> list[str]:
    every = len(played.fleet.nodes)
    if played.fault:
        where = f" with {FACTORS[played.fault.factor]} {played.value}" if played.value else ""
        fault = f"{played.fault.title}: {count(len(played.affected), 'node')} of {every}{where}"
    else:
        fault = "none"
    lines = [
        f"Fault:      {fault}",
        f"Result:     {_result(played, outcome)}",
        f"Takes:      {spell(outcome.took)}, with every approval given at once",
        f"Released:   {count(len(outcome.changed), 'node')} of {every}",
    ]
    if not played.fault:
        canary = len(played.stages[0].nodes)
        rate = round(100 * bound_on_failure_rate(canary))
        return [*lines, f"Not seen:   a fault of fewer than {rate} % of the nodes may miss a canary of {canary}"]
    spared = len(outcome.unseen)
    silent = len(played.affected) - len(outcome.harmed) - spared
    lines += [
        f"Harmed:     {count(len(outcome.harmed), 'node')}; {silent} released without a sign, {spared} not released",
        f"Released after the first sign: {count(outcome.released_after_sign, 'node')}",
    ]
    if outcome.harmed:
        lines.append(f"Suspects:   {outcome.suspects.title}. {outcome.suspects.summary}")
    return lines


def _result(played: VirtualPlan, outcome: Rehearsal) -> str:
    if outcome.stage is None:
        return "every stage passes"
    stage, gate = played.stages[outcome.stage].name, outcome.gate or "no gate"
    passed = names([played.stages[index].name for index in outcome.passed])
    before = f" after {passed} passed" if passed else ""
    return f"stops in {stage}{before}, by {gate}: {outcome.stopped_by}"
