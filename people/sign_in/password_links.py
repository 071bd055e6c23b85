"""A link by which a person sets their own password: once, and for a day. Nobody else ever knows it."""

from django.contrib.auth.tokens import PasswordResetTokenGenerator
from django.urls import reverse
from django.utils.encoding import force_bytes
from django.utils.http import urlsafe_base64_encode

from people.models import User


class PasswordLink(PasswordResetTokenGenerator):
    """Django's, which ends with the first password that is set; and also when its person is switched off."""

    key_salt = "people.sign_in.password_links.PasswordLink"

    def _make_hash_value(self, user, timestamp: int) -> str:
        return f"{super()._make_hash_value(user, timestamp)}{user.is_active}"


links = PasswordLink()


def path_for(person: User) -> str:
    return reverse("set-password", args=[urlsafe_base64_encode(force_bytes(person.pk)), links.make_token(person)])
