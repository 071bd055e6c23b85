import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from rollouts.models import Plan
from rollouts.rehearsal.faults import FAULTS, DriverFault, read_faults
from rollouts.rehearsal.outcome import outcome_of
from rollouts.rehearsal.run import Unending, rehearse
from rollouts.rehearsal.virtual_plan import NothingToRehearse, virtual_plan
from wording.durations import spell
from wording.numbers import count

TOLD_EVERY_S = 2.0


class Command(BaseCommand):
    help = "Rehearse a plan in virtual time on its present nodes, with its own gates. No cluster is changed."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("plan", type=int, help="number of the plan")
        parser.add_argument("--fault", metavar="KEY", help=f"fault of the new driver: {', '.join(FAULTS)}")
        parser.add_argument("--faults", type=Path, metavar="FILE", help="file with other faults for --fault")
        parser.add_argument("--seed", type=int, default=1, help="chooses the nodes with the fault (1)")

    def handle(self, *args: Any, **given: Any) -> None:
        plan = Plan.objects.select_related("cluster").filter(pk=given["plan"]).first()
        if plan is None:
            raise CommandError(f"Plan {given['plan']} does not exist.")
        now, fault = timezone.now(), _fault_of(given["fault"], given["faults"])
        try:
            played = virtual_plan(plan, fault, seed=given["seed"], now=now)
        except NothingToRehearse as nothing:
            raise CommandError(f"{nothing} The draft shows why each node is left out.") from nothing
        try:
            rehearsal = rehearse(played.fleet, played.stages, begins=now, tell=self._progress())
        except Unending as unending:
            raise CommandError(f"The plan neither ends nor stops in virtual time: {unending}") from unending
        for row in outcome_of(played, rehearsal)["rows"]:
            self.stdout.write(f"{row['label'] + ':':<11} {row['value']}")

    def _progress(self) -> Callable[[timedelta, int], None]:
        """Returns a callback that prints the virtual time of a long rehearsal every two seconds."""
        next_at = time.monotonic() + TOLD_EVERY_S

        def tell(spent: timedelta, released: int) -> None:
            nonlocal next_at
            if time.monotonic() >= next_at and self.stderr.isatty():
                next_at = time.monotonic() + TOLD_EVERY_S
                self.stderr.write(f"Rehearsed {spell(spent)} of virtual time, {count(released, 'node')} released …")

        return tell


def _fault_of(key: str | None, path: Path | None) -> DriverFault | None:
    """Returns the fault of the file, or of the built-in ones.

    :raises CommandError: when there is none of that key, or the file cannot be read
    """
    try:
        faults = read_faults(path) if path else FAULTS
    except (OSError, ValueError) as error:
        raise CommandError(f"The faults cannot be read: {error}") from error
    if key is not None and key not in faults:
        raise CommandError(f"No fault is called {key}. Faults: {', '.join(faults)}.")
    return faults[key] if key is not None else None
