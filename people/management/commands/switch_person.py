from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from people.management.telling import somebody
from people.roster.accounts import CONSOLE, LastAdmin, switch_off, switch_on


class Command(BaseCommand):
    help = "Switch a person off (nothing of theirs gets in any more, at once) or on again."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name")
        parser.add_argument("to", choices=["off", "on"])

    def handle(self, *args: Any, **given: Any) -> None:
        person = somebody(given["name"])
        act = switch_on if given["to"] == "on" else switch_off
        try:
            act(person, actor=CONSOLE, now=timezone.now())
        except LastAdmin as refusal:
            raise CommandError(str(refusal)) from refusal
        self.stdout.write(f"{person.username} is switched {given['to']}.")
