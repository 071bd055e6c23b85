from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from people.management.telling import somebody, somewhere
from people.models import Role
from people.roster.accounts import CONSOLE, HasItAlready, grant


class Command(BaseCommand):
    help = "Give a person a role on the fleet, a cluster or a pool."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name")
        parser.add_argument("role", choices=Role.values)
        parser.add_argument("--on", default="fleet", help="fleet, CLUSTER or CLUSTER/POOL; default: fleet")

    def handle(self, *args: Any, **given: Any) -> None:
        person, place = somebody(given["name"]), somewhere(given["on"])
        try:
            grant(person, given["role"], place, actor=CONSOLE, now=timezone.now())
        except HasItAlready as refusal:
            raise CommandError(str(refusal)) from refusal
        self.stdout.write(f"{person.username} is {given['role']} of {place.words} now.")
