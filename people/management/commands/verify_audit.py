from django.core.management.base import BaseCommand, CommandError

from people.models import AuditEntry
from people.models.audit_entry import broken_links


class Command(BaseCommand):
    help = "Check that no audit entry was changed, removed or inserted."

    def handle(self, *args, **options) -> None:
        broken = list(broken_links(AuditEntry.objects.all()))
        for entry, why in broken:
            self.stderr.write(f"{entry.subject} #{entry.number}: {why}")
        if broken:
            raise CommandError(f"Altered audit entries: {len(broken)}.")
        self.stdout.write(f"{AuditEntry.objects.count()} entries; the hash chain is intact.")
