"""The sign-in of a command line, as in RFC 8628, with bodies and refusals as everywhere in this API."""

from math import ceil

from django.urls import reverse
from django.utils import timezone
from django.utils.http import urlencode
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import Throttled
from rest_framework.permissions import AllowAny
from rest_framework.response import Response

from edges.rest import Asked, Edge
from people.models.device_authorization import INTERVAL_S, LIFE, LONGEST_CLIENT
from people.roster.device_authorizations import NotGranted, begin, exchange
from people.sign_in.addresses import client_address
from people.sign_in.throttle import count_device_request, count_wrong_token


class DeviceRequest(Asked):
    client = serializers.CharField(
        max_length=LONGEST_CLIENT, required=False, default="", allow_blank=True,
        help_text="Name of the client, which the person sees.",
    )  # fmt: skip


class DeviceCodesSerializer(serializers.Serializer):
    """RFC 8628 3.2. Show `verification_uri` and `user_code` to the person, then poll with `device_code`."""

    device_code = serializers.CharField()
    user_code = serializers.CharField()
    verification_uri = serializers.URLField()
    verification_uri_complete = serializers.URLField(help_text="With the user code.")
    expires_in = serializers.IntegerField(help_text="Seconds.")
    interval = serializers.IntegerField(help_text="Least seconds between two polls. Add 5 after `slow_down`.")


class DeviceTokenRequest(Asked):
    device_code = serializers.RegexField(r"^[A-Za-z0-9_-]+$", max_length=100)


class DeviceTokenSerializer(serializers.Serializer):
    """RFC 6749 5.1."""

    access_token = serializers.CharField(help_text="Shown only once.")
    token_type = serializers.CharField(help_text="Always `Bearer`.")
    expires_in = serializers.IntegerField(help_text="Seconds.")


class OpenEdge(Edge):
    """A view for callers who have no token yet. A session does not count, so that no CSRF check is needed."""

    authentication_classes = ()
    permission_classes = (AllowAny,)


class DeviceAuthorizations(OpenEdge):
    @extend_schema(request=DeviceRequest, responses={200: DeviceCodesSerializer})
    def post(self, request) -> Response:
        """Asks for codes. A person confirms the user code in the browser within 10 minutes."""
        body, now = self.read(DeviceRequest), timezone.now()
        if wait := count_device_request(request, now=now):
            raise Throttled(wait.total_seconds())
        codes = begin(client=body["client"], address=client_address(request), now=now)
        page = request.build_absolute_uri(reverse("device"))
        answer = {
            "device_code": codes.device_code,
            "user_code": codes.user_code,
            "verification_uri": page,
            "verification_uri_complete": f"{page}?{urlencode({'user_code': codes.user_code})}",
            "expires_in": int(LIFE.total_seconds()),
            "interval": INTERVAL_S,
        }
        return Response(answer, headers={"Cache-Control": "no-store"})


class DeviceTokens(OpenEdge):
    @extend_schema(request=DeviceTokenRequest, responses={200: DeviceTokenSerializer})
    def post(self, request) -> Response:
        """Returns the token, once. A second use of the code revokes the token.

        400 until a person confirms. `error` is `authorization_pending`, `slow_down`, `access_denied`, `expired_token`
        or `invalid_grant`.
        """
        body, now = self.read(DeviceTokenRequest), timezone.now()
        try:
            token, secret = exchange(body["device_code"], now=now)
        except NotGranted as refusal:
            if refusal.oauth_error == "invalid_grant" and (wait := count_wrong_token(request, now=now)):
                raise Throttled(wait.total_seconds()) from refusal
            raise
        left_s = ceil((token.expires_at - now).total_seconds()) if token.expires_at else 0
        answer = {"access_token": secret, "token_type": "Bearer", "expires_in": left_s}
        return Response(answer, headers={"Cache-Control": "no-store"})
