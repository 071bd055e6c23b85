import socket
from typing import Any

from django.core.management.base import BaseCommand, CommandParser
from django.utils import timezone

from config.models import ProcessEnd


class Command(BaseCommand):
    help = "Count an unexpected process exit for /metrics. deploy/supervise.py calls it."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("process", help="web, observe, rollouts, default, beat")
        parser.add_argument("cause", help="SIGSEGV, or exit 1")

    def handle(self, *args: Any, **given: Any) -> None:
        host = socket.gethostname()[:100]
        ProcessEnd.note(given["process"][:32], given["cause"][:32], host=host, now=timezone.now())
