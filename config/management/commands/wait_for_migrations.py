"""Ends once all migrations of this version are applied: in one process, as each start of Django costs CPU."""

import signal
import time
from typing import Any

from django.core.management.base import BaseCommand

from config.health import migrations_trouble
from fleet.observer.lease.connections import give_back

POLL_S = 3.0


class Command(BaseCommand):
    help = "Wait until all migrations of this version are applied. Pods of the chart run it before they start."
    requires_system_checks = ()

    def handle(self, *args: Any, **options: Any) -> None:
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # the first process of a container ignores it
        while trouble := migrations_trouble():
            self.stderr.write(f"Waiting for the setup Job to apply migrations. {trouble}")
            time.sleep(POLL_S)
            give_back()  # PostgreSQL may have ended it; Django replaces it only after a request
