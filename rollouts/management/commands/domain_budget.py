from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from edges.digits import whole
from fleet.management.commands.import_pools import cluster_of
from rollouts.commands.domain_budgets import EACH, kind_named, set_budget
from rollouts.commands.refusals import Refusal
from rollouts.management.placing import takes_who_and_why, who_and_why


class Command(BaseCommand):
    help = "Say how many GPU nodes of each zone, rack or NVLink domain of a cluster may be out at a time."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("cluster")
        parser.add_argument("kind", choices=[kind.value for kind in EACH])
        parser.add_argument("most", help="how many, those already broken included; “none”: no limit")
        parser.add_argument("--label", default="", help="of racks: the label of nodes that names theirs")
        takes_who_and_why(parser)

    def handle(self, *args: Any, **given: Any) -> None:
        asked = who_and_why(given)
        most = None if given["most"] == "none" else whole(given["most"])
        if most is None and given["most"] != "none":
            raise CommandError(f"“{given['most'][:20]}” is neither a number nor “none”.")
        try:
            said = set_budget(
                cluster_of(given["cluster"]), kind_named(given["kind"]), most, label=given["label"], now=timezone.now(),
                **asked,
            )  # fmt: skip
        except Refusal as refusal:
            raise CommandError(str(refusal)) from refusal
        self.stdout.write(said)
