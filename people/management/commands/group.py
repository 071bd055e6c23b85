from typing import Any

from django.contrib.auth.models import Group
from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from people.management.telling import somebody
from people.roster import groups
from people.roster.accounts import CONSOLE, NameTaken
from people.roster.groups import AlreadyIn, every_group


class Command(BaseCommand):
    help = "Groups of people: list them, add or remove one, put people in and take them out."

    def add_arguments(self, parser: CommandParser) -> None:
        acts = parser.add_subparsers(dest="act", required=True)
        acts.add_parser("list")
        for act in ("add", "remove"):
            acts.add_parser(act).add_argument("group")
        for act in ("join", "leave"):
            one = acts.add_parser(act)
            one.add_argument("group")
            one.add_argument("person")

    def handle(self, *args: Any, **given: Any) -> None:
        if given["act"] == "list":
            for group in every_group():
                self.stdout.write(f"{group.name}: {', '.join(p.username for p in group.user_set.all()) or 'nobody'}")
            return
        try:
            self.stdout.write(self._told(given["act"], given["group"], given.get("person", "")))
        except (AlreadyIn, NameTaken) as refusal:
            raise CommandError(str(refusal)) from refusal
        except ValidationError as refusal:
            raise CommandError(" ".join(refusal.messages)) from refusal

    def _told(self, act: str, name: str, person_name: str) -> str:
        acting: dict[str, Any] = {"actor": CONSOLE, "now": timezone.now()}
        if act == "add":
            return f"There is a group {groups.add(name, **acting).name} now."
        group = Group.objects.filter(name=name).first()
        if group is None:
            raise CommandError(f"There is no group {name}. bin/manage group add {name} makes it.")
        if act == "remove":
            groups.remove(group, **acting)
            return f"The group {group.name} is gone."
        person = somebody(person_name)
        if act == "join":
            groups.join(group, person, **acting)
            return f"{person.username} is in {group.name} now."
        groups.leave(group, person, **acting)
        return f"{person.username} is in {group.name} no more."
