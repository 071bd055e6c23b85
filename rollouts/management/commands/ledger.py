from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from fleet.management.commands.import_pools import cluster_of
from rollouts.commands.domain_budgets import says
from rollouts.models import Disruption, DomainBudget
from rollouts.node_order.failure_domains import DomainKind
from wording.instants import to_the_second


class Command(BaseCommand):
    help = "Show the ledger of disruption of a cluster: what its domains may have out, and who is out."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("cluster")

    def handle(self, *args: Any, **given: Any) -> None:
        cluster = cluster_of(given["cluster"])
        for row in DomainBudget.objects.filter(cluster=cluster):
            self.stdout.write(f"{says(DomainKind(row.kind), row.max_unavailable, row.label)} {row.reason}".strip())
        disruptions = list(Disruption.objects.in_force().filter(cluster=cluster).select_related("plan"))
        for one in disruptions:
            self.stdout.write(
                f"{one.node_name}: out since {to_the_second(one.taken_at)}, by {one.plan or one.taken_by}."
            )
        if not disruptions:
            self.stdout.write("Nobody has a node out.")
