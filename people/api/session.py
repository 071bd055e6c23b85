from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.contrib.auth import authenticate, login, logout
from django.http import HttpRequest
from django.middleware.csrf import get_token
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import APIException, PermissionDenied, Throttled
from rest_framework.permissions import AllowAny
from rest_framework.response import Response

from edges.rest import Asked, Edge
from people.api.me import MeSerializer, introduced
from people.models import User
from people.sign_in.access import NO_LOCAL
from people.sign_in.second_factor import has_second_factor, note_second_factor, why_wrong
from people.sign_in.throttle import count_password, forgive, normalized_name


class WrongPassword(APIException):
    status_code = 401
    default_detail = "Wrong username or password."


class SessionRequest(Asked):
    username = serializers.CharField(max_length=150)
    password = serializers.CharField(max_length=4096, trim_whitespace=False)
    code = serializers.CharField(
        max_length=16, required=False, default="", help_text="Code of the app, or a recovery code, of a second factor."
    )


class Session(Edge):
    def get_authenticators(self) -> list[BaseAuthentication]:
        """Skips authentication on sign-in. No CSRF check is needed: a foreign form cannot send JSON, the only body
        type read."""
        return [] if self._is_signing_in else super().get_authenticators()

    def get_permissions(self) -> Sequence[Any]:
        return [AllowAny()] if self._is_signing_in else super().get_permissions()

    @extend_schema(request=SessionRequest, responses={200: MeSerializer})
    def post(self, request) -> Response:
        """Signs in. Sets the session cookie and the csrftoken cookie, whose value writes must send as X-CSRFToken."""
        if not settings.LOCAL_SIGN_IN:
            raise PermissionDenied(NO_LOCAL)
        body = self.read(SessionRequest)
        name = normalized_name(body["username"])
        if wait := count_password(request, name, now=timezone.now()):
            raise Throttled(wait.total_seconds())
        user = authenticate(request._request, username=name, password=body["password"])  # noqa: SLF001 (Django's own)
        if user is None:
            raise WrongPassword
        forgive(request, name)
        if has_factor := has_second_factor(user):
            self._require_code(request._request, user, body["code"])  # noqa: SLF001
        login(request._request, user)  # noqa: SLF001
        if has_factor:
            note_second_factor(request.session)
        get_token(request._request)  # noqa: SLF001
        return Response(introduced(user))

    @extend_schema(request=None, responses={204: None})
    def delete(self, request) -> Response:
        """Signs out."""
        logout(request._request)  # noqa: SLF001
        return Response(status=204)

    def _require_code(self, request: HttpRequest, user: User, code: str) -> None:
        if not code:
            raise WrongPassword("This account has a second factor. Send its code as “code”.")
        if problem := why_wrong(request, user, {"code": code}, now=timezone.now()):
            raise WrongPassword(problem)

    @property
    def _is_signing_in(self) -> bool:
        return bool(self.request) and self.request.method == "POST"
