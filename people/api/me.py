from dataclasses import asdict
from typing import Any

from django.db.models import prefetch_related_objects
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from edges.rest import Edge, RowSerializer
from people.models import ApiToken, RoleBinding, User
from people.rights import Permission, scope_of


class BindingSerializer(RowSerializer):
    scope_id = serializers.IntegerField(help_text="ID of the cluster or pool. 0: the fleet.")

    class Meta:
        model = RoleBinding
        fields = ("role", "scope", "scope_id")


class ScopeSerializer(serializers.Serializer):
    """The places where a person has one permission."""

    everywhere = serializers.BooleanField()
    cluster_ids = serializers.ListField(child=serializers.IntegerField())
    pool_ids = serializers.ListField(child=serializers.IntegerField())


class UsedTokenSerializer(RowSerializer):
    class Meta:
        model = ApiToken
        fields = ("id", "name", "hint", "expires_at")


class MeSerializer(serializers.Serializer):
    """The caller and their permissions by place. A token never allows more than it was issued for."""

    username = serializers.CharField()
    roles = BindingSerializer(many=True)
    permissions = serializers.DictField(
        child=ScopeSerializer(), help_text=f"Scope by permission: {', '.join(Permission)}."
    )
    token = UsedTokenSerializer(allow_null=True, help_text="The token of this request. Null: a session.")


class Me(Edge):
    @extend_schema(responses=MeSerializer)
    def get(self, request) -> Response:
        return Response(introduced(self.user))


def introduced(user: User) -> dict[str, Any]:
    prefetch_related_objects([user], "bindings")
    permissions = {permission.value: asdict(scope_of(user, permission)) for permission in Permission}
    row = {"username": user.username, "roles": user.bindings.all(), "permissions": permissions, "token": user.token}
    return MeSerializer(row).data
