from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from people.management.telling import somebody, somewhere
from people.models import Role
from people.roster.accounts import CONSOLE, LastAdmin, take


class Command(BaseCommand):
    help = "Take a role from a person. Their open pages end within five seconds."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name")
        parser.add_argument("role", choices=Role.values)
        parser.add_argument("--on", default="fleet", help="fleet, CLUSTER or CLUSTER/POOL; default: fleet")

    def handle(self, *args: Any, **given: Any) -> None:
        person, place = somebody(given["name"]), somewhere(given["on"])
        binding = person.bindings.filter(role=given["role"], scope=place.scope, scope_id=place.key).first()
        if binding is None:
            raise CommandError(f"{person.username} is no {given['role']} of {place.words}.")
        try:
            take(binding, place, actor=CONSOLE, now=timezone.now())
        except LastAdmin as refusal:
            raise CommandError(str(refusal)) from refusal
        self.stdout.write(f"{person.username} is no {given['role']} of {place.words} any more.")
