from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from rollouts.commands.fleet_freezes import freeze
from rollouts.commands.refusals import Refusal
from rollouts.management.placing import instant, somewhere, takes_who_and_why, who_and_why
from rollouts.queries.restraints import restraint_by


class Command(BaseCommand):
    help = "Let nothing go in the fleet, a cluster or a pool, and hold again what has not begun."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("where", help="fleet, CLUSTER or CLUSTER/POOL")
        parser.add_argument("--until", default="", help="as 2026-11-30T08:00Z; default: until somebody lifts it")
        parser.add_argument("--also-rollbacks", action="store_true", help="hold also who goes back")
        takes_who_and_why(parser)

    def handle(self, *args: Any, **given: Any) -> None:
        now, until = timezone.now(), instant(given["until"]) if given["until"] else None
        try:
            row = freeze(
                somewhere(given["where"]), until=until, binds_rollbacks=given["also_rollbacks"], now=now,
                **who_and_why(given),
            )  # fmt: skip
        except Refusal as refusal:
            raise CommandError(str(refusal)) from refusal
        self.stdout.write(restraint_by(row, now=now).sentence)
        self.stdout.write(f"bin/manage lift {row.pk} --reason WHY ends it.")
