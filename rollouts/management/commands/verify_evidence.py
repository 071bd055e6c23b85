from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from rollouts.evidence.file import NoEvidence
from rollouts.evidence.verification import verify
from wording.numbers import count

MOST_BYTES = 100_000_000


class Command(BaseCommand):
    help = "Verify an evidence file without a database. The exit code is 1 if anything was altered."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", help="as a plan's page downloads it, or GET /api/v1/plans/ID/evidence")

    def handle(self, *args: Any, **given: Any) -> None:
        try:
            found = verify(_content(given["file"]))
        except NoEvidence as refusal:
            raise CommandError(str(refusal)) from refusal
        if found.flaws:
            raise CommandError("\n".join(["It was altered.", *(str(flaw) for flaw in found.flaws)]))
        chain = f"{count(found.decisions, 'decision')}, {count(found.entries, 'audit entry', 'audit entries')}"
        self.stdout.write(f"The file is unchanged: {chain}.")
        self.stdout.write(f"The last hash of its audit chain is {found.last_hash}.")
        self.stdout.write(f"The SHA-256 of the whole file is {found.file_hash}.")


def _content(name: str) -> bytes:
    try:
        with Path(name).open("rb") as file:
            content = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise CommandError(f"{name} cannot be read: {error}.") from error
    if len(content) > MOST_BYTES:
        raise CommandError(f"{name} is larger than {MOST_BYTES // 1_000_000} MB.")
    return content
