"""Access of long-lived connections: checks that the session and the roles behind it are still valid."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.contrib.auth import HASH_SESSION_KEY
from django.contrib.auth.tokens import PasswordResetTokenGenerator
from django.urls import reverse
from django.utils.crypto import constant_time_compare
from django.utils.encoding import force_bytes
from django.utils.http import urlsafe_base64_encode

from people.models import BrowserSession, User

SIGNED_OUT, ROLE_TAKEN = "You are signed out.", "Your roles have changed."
NO_LOCAL = "Sign-in with a password is switched off. Use single sign-on."
Rights = frozenset[tuple[str, str, int]]


@dataclass(frozen=True)
class Access:
    """The session and roles with which a person was let in."""

    user_id: int
    rights: Rights
    session_key: str = ""  # blank: no session
    session_hash: str = ""  # hash of the password in the session

    @classmethod
    def of(cls, user: User, session: Any = None) -> "Access":
        """Builds the access of a user. Two queries."""
        key = (session.session_key or "") if session is not None else ""
        return cls(user.pk, _rights(user), key, session.get(HASH_SESSION_KEY, "") if session is not None else "")


def lapsed(accesses: Iterable[Access], *, now: datetime) -> Mapping[Access, str]:
    """Returns the accesses that are no longer valid, with the reason. Three queries in total.

    A newly given role ends no access; the person sees more on the next page.
    """
    accesses = set(accesses)
    people = User.objects.filter(pk__in={access.user_id for access in accesses}, is_active=True)
    known = {user.pk: user for user in people.prefetch_related("bindings")}
    keys = {access.session_key for access in accesses}
    rows = BrowserSession.objects.filter(session_key__in=keys, expire_date__gt=now)
    open_ = set(rows.values_list("session_key", flat=True))
    reasons = {}
    for access in accesses:
        user = known.get(access.user_id)
        if user is None or (access.session_key and access.session_key not in open_) or _is_old_password(access, user):
            reasons[access] = SIGNED_OUT
        elif not access.rights <= _rights(user):
            reasons[access] = ROLE_TAKEN
    return reasons


def _rights(user: User) -> Rights:
    return frozenset((binding.role, binding.scope, binding.scope_id) for binding in user.bindings.all())


def _is_old_password(access: Access, user: User) -> bool:
    hashes = (user.get_session_auth_hash(), *user.get_session_auth_fallback_hash())
    return bool(access.session_hash) and not any(constant_time_compare(access.session_hash, valid) for valid in hashes)


class PasswordLink(PasswordResetTokenGenerator):
    """Django's reset token; it ends with the first password that is set, or when the person is switched off."""

    key_salt = "people.sign_in.access.PasswordLink"

    def _make_hash_value(self, user, timestamp: int) -> str:
        return f"{super()._make_hash_value(user, timestamp)}{user.is_active}"


links = PasswordLink()


def path_for(person: User) -> str:
    return reverse("set-password", args=[urlsafe_base64_encode(force_bytes(person.pk)), links.make_token(person)])
