"""The mapping of the identity provider's groups to roles, for admins of the fleet."""

from typing import Any

from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from edges.rest import Listing, RowSerializer
from people.api.people import PeopleEdge, RoleRequest
from people.models import GroupMapping
from people.models.mapped_group import LONGEST_GROUP
from people.places import all_places
from people.rights import Permission, require
from people.roster import group_mappings
from people.sign_in.step_up import require_recent_sign_in


class GroupMappingSerializer(RowSerializer):
    """A role on a place for everybody in a group. Roles in `QUARTERDECK_OIDC_ROLES` are not listed."""

    scope_id = serializers.IntegerField(help_text="ID of the cluster or pool. 0: the fleet.")

    class Meta:
        model = GroupMapping
        fields = ("id", "group", "role", "scope", "scope_id")


class GroupMappingRequest(RoleRequest):
    group = serializers.CharField(max_length=LONGEST_GROUP, help_text="Name or id of the group, exactly.")


class MappingEdge(PeopleEdge):
    def initial(self, request: Any, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        require(self.user, Permission.ADMINISTER)


class GroupMappingList(MappingEdge, Listing):
    """Lists the mappings by group."""

    serializer_class = GroupMappingSerializer
    queryset = GroupMapping.objects.none()

    def get_queryset(self) -> QuerySet[GroupMapping]:
        return GroupMapping.objects.all()

    @extend_schema(request=GroupMappingRequest, responses={201: GroupMappingSerializer})
    def post(self, request) -> Response:
        """Maps a group to a role. It counts from the next sign-in of each member on."""
        body = self.read(GroupMappingRequest)
        asked = (body["scope"], body["scope_id"])
        place = next((place for place in all_places() if (place.scope, place.key) == asked), None)
        if place is None:
            raise serializers.ValidationError({"scope_id": f"There is no {body['scope']} with this id."})
        require_recent_sign_in(request)
        try:
            mapping = group_mappings.add(body["group"], body["role"], place, **self.acting())
        except ValidationError as error:
            raise serializers.ValidationError({"group": error.messages}) from error
        return Response(GroupMappingSerializer(mapping).data, status=201)


class GroupMappingDetail(MappingEdge):
    @extend_schema(responses={204: None})
    def delete(self, request, mapping_id: int) -> Response:
        """Removes a mapping. People keep their roles until their next sign-in."""
        mapping = self.load(GroupMapping.objects.all(), mapping_id)
        require_recent_sign_in(request)
        group_mappings.remove(mapping, **self.acting())
        return Response(status=204)
