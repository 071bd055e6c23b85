from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from fleet.models import Cluster
from health.inbox.telemetry_sources import remove_source
from health.models import TelemetrySource
from people.roster.accounts import CONSOLE


class Command(BaseCommand):
    help = "Ask a cluster's Prometheus no more, and forget what it said. What it told of past hours stays."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("cluster", help="its name")
        parser.add_argument("--address", metavar="URL", help="only if it is this one; without it, whichever it is")

    def handle(self, *args: Any, **given: Any) -> None:
        cluster = Cluster.objects.filter(name=given["cluster"]).first()
        if cluster is None:
            raise CommandError(f"There is no cluster named {given['cluster']}.")
        source = TelemetrySource.objects.filter(cluster=cluster).select_related("cluster").first()
        if source is None or given["address"] not in (None, source.url):
            self.stdout.write(f"{cluster.name} has no such Prometheus: nothing was changed.")
            return
        remove_source(source, actor=CONSOLE, now=timezone.now())
        self.stdout.write(f"Nobody asks {source.url} for {cluster.name} any more.")
