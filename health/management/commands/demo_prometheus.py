from typing import Any

from django.core.management.base import BaseCommand, CommandParser
from django.utils import timezone

from fleet.models import Cluster
from health import wake
from health.inbox.telemetry_sources import put_source, remove_source
from health.models import TelemetrySource
from people.roster.accounts import CONSOLE


class Command(BaseCommand):
    help = "Make a demo's own Prometheus the telemetry source of its cluster, or remove it."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("cluster", help="its name")
        parser.add_argument("url")
        parser.add_argument("--remove", action="store_true", help="remove the source if it still has this address")

    def handle(self, *args: Any, cluster: str, url: str, remove: bool, **_: Any) -> None:
        row = Cluster.objects.get(name=cluster)
        if not remove:
            put_source(row, actor=CONSOLE, now=timezone.now(), url=url, is_on=True)
            wake.wake_telemetry_of(row.pk)
        elif source := TelemetrySource.objects.filter(cluster=row, url=url).select_related("cluster").first():
            remove_source(source, actor=CONSOLE, now=timezone.now())
