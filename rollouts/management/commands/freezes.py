from typing import Any

from django.core.management.base import BaseCommand
from django.utils import timezone

from rollouts.models import Freeze
from rollouts.queries.restraints import restraint_by


class Command(BaseCommand):
    help = "List the freezes in force, and the stop."
    requires_system_checks: list[str] = []

    def handle(self, *args: Any, **given: Any) -> None:
        now = timezone.now()
        rows = list(Freeze.objects.in_force(now=now).select_related("cluster", "pool"))
        for row in rows:
            also = " Rollbacks as well." if row.binds_rollbacks and not row.is_stop else ""
            self.stdout.write(f"{row.pk}: {restraint_by(row, now=now).sentence}{also}")
        if not rows:
            self.stdout.write("Nothing is frozen.")
