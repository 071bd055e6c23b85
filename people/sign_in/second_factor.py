"""The second factor of local accounts: codes of an app (TOTP), passkeys (WebAuthn) and recovery codes.

django-allauth keeps the factors and checks them. People of an identity provider use its second factor.
"""

from base64 import urlsafe_b64encode
from datetime import datetime, timedelta
from hashlib import sha256
from math import ceil
from typing import Any

from allauth.account.adapter import DefaultAccountAdapter
from allauth.mfa.adapter import DefaultMFAAdapter
from allauth.mfa.base.forms import AuthenticateForm
from allauth.mfa.models import Authenticator
from allauth.mfa.webauthn.forms import AuthenticateWebAuthnForm
from cryptography.fernet import Fernet, MultiFernet
from django.conf import settings
from django.contrib.sessions.backends.base import SessionBase
from django.http import HttpRequest

from people.models import User
from people.sign_in.addresses import client_address
from people.sign_in.throttle import count_password, forgive, is_first_use

HAS_FACTOR = "second_factor"  # session key: the person showed a second factor, or came from the identity provider
LONGEST_CREDENTIAL = 20_000  # characters of a passkey's answer
CODE_COUNTS = timedelta(seconds=90)  # with a tolerance of one step of 30 s to each side
WRONG = "This code or passkey is wrong."
NEEDED = "Your role needs a second factor. Set one up on the page “Second factor” of your account."
FIRST_FACTORS = (Authenticator.Type.TOTP, Authenticator.Type.WEBAUTHN)


class ClientAdapter(DefaultAccountAdapter):
    """Counts tries by the address that our own proxies name."""

    def get_client_ip(self, request: HttpRequest) -> str:
        return client_address(request)


class FactorAdapter(DefaultMFAAdapter):
    """Encrypts the secrets of codes with a key made of QUARTERDECK_SECRET_KEY."""

    def encrypt(self, text: str) -> str:
        return _cipher().encrypt(text.encode()).decode()

    def decrypt(self, encrypted_text: str) -> str:
        return _cipher().decrypt(encrypted_text.encode()).decode()


def _cipher() -> MultiFernet:
    secrets = (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)
    keys = (sha256(f"second factor:{secret}".encode()).digest() for secret in secrets)
    return MultiFernet([Fernet(urlsafe_b64encode(key)) for key in keys])


def has_second_factor(user: User) -> bool:
    return Authenticator.objects.filter(user=user, type__in=FIRST_FACTORS).exists()


def note_second_factor(session: SessionBase) -> None:
    session[HAS_FACTOR] = True


def lacks_second_factor(user: User, session: SessionBase) -> bool:
    """Tells whether a role of the user needs a second factor that this session did not show."""
    roles = settings.SECOND_FACTOR_ROLES
    return bool(roles) and not session.get(HAS_FACTOR) and any(item.role in roles for item in user.bindings.all())


def why_wrong(request: HttpRequest, user: User, given: dict[str, Any], *, now: datetime) -> str:
    """Checks `code` or `credential`. Returns why it is refused, as a sentence. Blank: it is right."""
    name = user.get_username()
    if wait := count_password(request, name, now=now):
        return f"Too many tries. Wait {ceil(wait.total_seconds())} s, then try again."
    credential = given.get("credential") or ""
    form = AuthenticateWebAuthnForm(given, user=user) if credential else AuthenticateForm(given, user=user)
    if len(credential) > LONGEST_CREDENTIAL or not _is_valid(form):
        return WRONG
    used: Authenticator = form.cleaned_data["credential"] if credential else form.authenticator
    if used.type == Authenticator.Type.TOTP:
        code = form.cleaned_data["code"].strip()
        if not is_first_use(f"code of {user.pk}: {code}", within=CODE_COUNTS, now=now):
            return "This code was used before. Wait for the next code."
    used.record_usage()
    forgive(request, name)
    return ""


def _is_valid(form: AuthenticateForm | AuthenticateWebAuthnForm) -> bool:
    """Checks a form. The library does not catch every error of a malformed answer."""
    try:
        return bool(form.is_valid())
    except (KeyError, ValueError, TypeError, AttributeError, RecursionError):
        return False
