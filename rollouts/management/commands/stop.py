from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from people.roster.accounts import CONSOLE
from rollouts.commands.fleet_freezes import stop
from rollouts.commands.refusals import Refusal
from rollouts.models import Plan
from rollouts.queries.restraints import restraint_by
from wording.numbers import count

NO_WORKER = (
    "A worker holds nodes that have not begun within a second or two. Without a worker, no node is released and "
    "no node is held again: docs/takeover.md."
)


class Command(BaseCommand):
    help = "Stop the whole fleet: no node is released, forward or back, until somebody lifts it."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--reason", required=True, help="the reason; stored permanently and shown by every waiting plan"
        )
        parser.add_argument("--by", default=CONSOLE, help="name of the person; default: %(default)s")
        parser.add_argument("--yes", action="store_true", help="do not ask for confirmation")

    def handle(self, *args: Any, **given: Any) -> None:
        reason, by = given["reason"].strip()[:1000], given["by"].strip()[:150] or CONSOLE
        if not reason:
            raise CommandError("Give a reason for the next person.")
        plans = Plan.objects.under_way().count()
        if not given["yes"] and not self._is_meant(plans):
            raise CommandError("Nothing is stopped.")
        now = timezone.now()
        try:
            row = stop(now=now, actor=by, reason=reason)
        except Refusal as refusal:
            raise CommandError(str(refusal)) from refusal
        self.stdout.write(f"{restraint_by(row, now=now).sentence} {NO_WORKER}")
        self.stdout.write("The banner on every page lifts the stop, and so does POST /api/v1/stop/lifts.")

    def _is_meant(self, plans: int) -> bool:
        self.stdout.write(f"This stops {count(plans, 'plan')} in progress in every cluster, including rollbacks.")
        try:
            return input("Type “stop” to continue: ").strip() == "stop"
        except EOFError:
            return False
