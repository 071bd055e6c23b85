from datetime import datetime

from django.db.models import QuerySet
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from edges.rest import Asked, Edge, Listing, RowSerializer
from people.models import ApiToken, User
from people.models.api_token import USUAL_LIFE
from people.rights import OF_TOKENS, NotAllowed
from people.roster import accounts
from people.sign_in.step_up import require_recent_sign_in


class TokenSerializer(RowSerializer):
    permissions = serializers.ListField(child=serializers.CharField())

    class Meta:
        model = ApiToken
        fields: tuple[str, ...] = (
            "id", "name", "hint", "pepper_id", "permissions", "created_at", "expires_at", "revoked_at", "last_used_at",
            "last_used_from",
        )  # fmt: skip


class NewTokenSerializer(TokenSerializer):
    secret = serializers.CharField(help_text="Shown only once.")

    class Meta(TokenSerializer.Meta):
        fields = (*TokenSerializer.Meta.fields, "secret")


class TokenRequest(Asked):
    name = serializers.CharField(max_length=100, help_text="Purpose of the token.")
    permissions = serializers.MultipleChoiceField(
        choices=[(permission.value, permission.value) for permission in OF_TOKENS],
        allow_empty=False,
        help_text="Permissions of the token; never more than its owner has.",
    )
    expires_at = serializers.DateTimeField(
        allow_null=True, required=False, help_text="Null: valid until revoked. Default: in 90 days."
    )

    def validate_expires_at(self, at: datetime | None) -> datetime | None:
        if at is not None and at <= timezone.now():
            raise serializers.ValidationError("This time is in the past.")
        return at


class TokenList(Listing):
    """Lists the caller's own tokens, including revoked ones."""

    serializer_class = TokenSerializer
    queryset = ApiToken.objects.none()

    def get_queryset(self) -> QuerySet[ApiToken]:
        return own(self.user)

    @extend_schema(request=TokenRequest, responses={201: NewTokenSerializer})
    def post(self, request) -> Response:
        """Issues a token. A token may not call this: a token must not create its successor."""
        by_hand(self.user)
        body = self.read(TokenRequest)
        require_recent_sign_in(request)
        now = timezone.now()
        token, secret = accounts.issue(
            owner=self.user,
            actor=self.user.username,
            name=body["name"],
            permissions=sorted(body["permissions"]),
            expires_at=body.get("expires_at", now + USUAL_LIFE),
            now=now,
        )
        token.secret = secret  # type: ignore[attr-defined]
        return Response(NewTokenSerializer(token).data, status=201)


class TokenDetail(Edge):
    @extend_schema(responses=TokenSerializer)
    def get(self, request, token_id: int) -> Response:
        return Response(TokenSerializer(self.load(own(self.user), token_id)).data)

    @extend_schema(responses={204: None})
    def delete(self, request, token_id: int) -> Response:
        """Revokes the token at once and for good. A token may revoke itself."""
        token = self.load(own(self.user), token_id)
        if self.user.token != token:
            by_hand(self.user)
        accounts.revoke(token, actor=self.user.username, now=timezone.now())
        return Response(status=204)


def own(user: User) -> QuerySet[ApiToken]:
    return ApiToken.objects.filter(user=user).order_by("-pk")


def by_hand(user: User) -> None:
    """Refuses a caller that is a token.

    :raises NotAllowed: when the caller is a token
    """
    if user.token is not None:
        raise NotAllowed("A token cannot change tokens, passwords or sessions. Sign in for that.")
