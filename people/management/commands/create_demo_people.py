import json
from datetime import datetime

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import transaction
from django.utils import timezone

from people.models import ApiToken, Role, RoleBinding, User
from people.models.api_token import USUAL_LIFE
from people.rights import Permission

LOOPBACK = {"127.0.0.1", "localhost", "[::1]"}


class Command(BaseCommand):
    help = "Create one login per role for a local demo and print each as a JSON line. Existing logins stay unchanged."

    def add_arguments(self, parser) -> None:
        parser.add_argument("--password", required=True, help="the password of all of them")
        parser.add_argument("--tokens", action="store_true", help="also issue an API token for each")

    def handle(self, *, password: str, tokens: bool, **_) -> None:
        if not set(settings.ALLOWED_HOSTS) <= LOOPBACK:
            raise CommandError("These logins have a public password. They are allowed only on a loopback server.")
        for role in Role:
            user, is_new = self.person(role, password)
            line: dict[str, str] = {"role": role.value, "username": user.username}
            line |= {"password": password} if is_new else {}
            if tokens:
                line["token"] = self.token(user, now=timezone.now())
            self.stdout.write(json.dumps(line))

    def token(self, user: User, *, now: datetime) -> str:
        _, secret = ApiToken.issue(
            user=user, name="demo", permissions=list(Permission), now=now, expires_at=now + USUAL_LIFE
        )
        return secret

    @transaction.atomic
    def person(self, role: Role, password: str) -> tuple[User, bool]:
        """Returns the login named after its role, and True if it is new. An existing login keeps its password and
        roles."""
        user, is_new = User.objects.get_or_create(username=role.value)
        if is_new:
            user.set_password(password)
            user.save(update_fields=["password"])
            RoleBinding.objects.create(user=user, role=role)
        return user, is_new
