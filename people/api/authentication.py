"""Authentication of REST callers."""

from django.utils import timezone
from rest_framework import authentication, exceptions

from people.models import ApiToken, User
from people.sign_in.addresses import client_address
from people.sign_in.second_factor import NEEDED, lacks_second_factor
from people.sign_in.throttle import count_wrong_token

CSRF = "Send the csrftoken cookie's value in the header X-CSRFToken."


class TokenAuthentication(authentication.BaseAuthentication):
    """Authentication by `Authorization: Bearer qd_…`."""

    def authenticate(self, request) -> tuple[User, ApiToken] | None:
        scheme, _, secret = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() != "bearer":
            return None
        now = timezone.now()
        token = ApiToken.of(secret.strip(), now=now)
        if token is None or not token.user.is_active:
            if wait := count_wrong_token(request, now=now):
                raise exceptions.Throttled(wait.total_seconds())
            raise exceptions.AuthenticationFailed("This token is unknown, expired or revoked.")
        token.mark_used(now=now, address=client_address(request))
        token.user.token = token
        return token.user, token

    def authenticate_header(self, request) -> str:
        return "Bearer"


class SessionAuthentication(authentication.SessionAuthentication):
    """Authentication by the browser's session, with the CSRF check. A caller without a session gets 401, not 403."""

    def enforce_csrf(self, request) -> None:
        try:
            super().enforce_csrf(request)
        except exceptions.PermissionDenied as error:
            raise exceptions.PermissionDenied(CSRF) from error

    def authenticate(self, request) -> tuple[User, None] | None:
        found = super().authenticate(request)
        if found and lacks_second_factor(found[0], request.session):
            raise exceptions.PermissionDenied(NEEDED)
        return found

    def authenticate_header(self, request) -> str:
        return "Session"
