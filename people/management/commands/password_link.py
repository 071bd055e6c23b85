from typing import Any

from django.core.management.base import BaseCommand, CommandParser
from django.utils import timezone

from people.management.telling import link_for, somebody
from people.roster.accounts import CONSOLE, note_password


class Command(BaseCommand):
    help = "Print a link to set a new password. It works once, for a day. The old password stays valid until then."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name")

    def handle(self, *args: Any, **given: Any) -> None:
        person = somebody(given["name"])
        note_password(person, "person.password-link", actor=CONSOLE, now=timezone.now())
        self.stdout.write(link_for(person))
