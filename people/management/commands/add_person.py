from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import transaction
from django.utils import timezone

from people.management.telling import link_for, somewhere
from people.models import Role
from people.roster import accounts
from people.roster.accounts import CONSOLE, NameTaken


class Command(BaseCommand):
    help = "Add a person and print a link to set the password. The link works once, for a day."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name")
        parser.add_argument("--role", choices=Role.values, help="also give this role")
        parser.add_argument("--on", default="fleet", help="where: fleet, CLUSTER or CLUSTER/POOL; default: fleet")

    def handle(self, *args: Any, **given: Any) -> None:
        place, now = somewhere(given["on"]), timezone.now()
        try:
            with transaction.atomic():
                person = accounts.add(given["name"], actor=CONSOLE, now=now)
                if given["role"]:
                    accounts.grant(person, given["role"], place, actor=CONSOLE, now=now)
                accounts.note_password(person, "person.password-link", actor=CONSOLE, now=now)
        except (NameTaken, ValidationError) as refusal:
            raise CommandError(" ".join(getattr(refusal, "messages", [str(refusal)]))) from refusal
        role = f"{given['role']} of {place.words}" if given["role"] else "without a role yet"
        self.stderr.write(f"{person.username} was added, {role}. Link to set the password:")
        self.stdout.write(link_for(person))
