from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from edges.digits import whole
from rollouts.commands.fleet_freezes import lift, lift_stop
from rollouts.commands.refusals import Refusal
from rollouts.management.placing import takes_who_and_why, who_and_why
from rollouts.models import Freeze


class Command(BaseCommand):
    help = "End a freeze, or the stop of the fleet. Its plans go on."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("which", help="“stop”, or the number that bin/manage freezes shows")
        takes_who_and_why(parser)

    def handle(self, *args: Any, **given: Any) -> None:
        now, asked, which = timezone.now(), who_and_why(given), given["which"].removeprefix("#")
        try:
            if which == "stop":
                lift_stop(now=now, **asked)
            else:
                lift(self._found(which), now=now, **asked)
        except Refusal as refusal:
            raise CommandError(str(refusal)) from refusal
        self.stdout.write("Lifted. What nothing else binds goes on.")

    def _found(self, which: str) -> Freeze:
        key = whole(which)
        row = Freeze.objects.filter(pk=key).select_related("cluster", "pool").first() if key else None
        if row is None:
            raise CommandError(f"There is no freeze {which[:20]}. bin/manage freezes lists those in force.")
        return row
