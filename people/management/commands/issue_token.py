from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from edges import arguments
from people.models import User
from people.rights import Permission
from people.roster import tokens
from people.roster.accounts import CONSOLE


class Command(BaseCommand):
    help = "Issue an API token for a user and print its secret, which is shown only now."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("username")
        parser.add_argument("--name", type=arguments.name(100), required=True, help="what it is for")
        parser.add_argument(
            "--permission",
            action="append",
            required=True,
            choices=[each.value for each in Permission],
            help="may be repeated",
        )
        parser.add_argument("--days", type=int, default=90, help="how long it is valid; 0: until it is revoked")

    def handle(self, *args: Any, **given: Any) -> None:
        owner = User.objects.filter(username=given["username"]).first()
        if owner is None:
            raise CommandError(f"There is no user {given['username']}.")
        if not 0 <= given["days"] <= 3650:
            raise CommandError("--days goes from 0 to 3650.")
        now = timezone.now()
        expires_at = now + timedelta(days=given["days"]) if given["days"] else None
        _, secret = tokens.issue(
            owner=owner,
            actor=CONSOLE,
            name=given["name"],
            permissions=given["permission"],
            expires_at=expires_at,
            now=now,
        )
        self.stdout.write(secret)
