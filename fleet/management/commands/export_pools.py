from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from fleet.management.commands.import_pools import cluster_of
from fleet.pools.files import write


class Command(BaseCommand):
    help = "Print the pools of a cluster as the YAML file that import_pools takes."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("cluster")

    def handle(self, *args: Any, **given: Any) -> None:
        self.stdout.write(write(cluster_of(given["cluster"])), ending="")
