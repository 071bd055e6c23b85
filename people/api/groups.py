"""Groups of people: readable for anyone who gives roles, writable for admins of the fleet."""

from django.contrib.auth.models import Group
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from edges.rest import Asked, Listing, RowSerializer
from people.api.people import PeopleEdge
from people.models import User
from people.rights import Permission, require
from people.roster import groups
from people.roster.groups import AlreadyIn, every_group
from people.sign_in.step_up import require_recent_sign_in


class MemberSerializer(RowSerializer):
    class Meta:
        model = User
        fields = ("id", "username", "is_active")


class GroupSerializer(RowSerializer):
    """A group of people. It gives no permission; a plan may require approvals from its members."""

    members = MemberSerializer(source="user_set", many=True)

    class Meta:
        model = Group
        fields = ("id", "name", "members")


class NewGroup(Asked):
    name = serializers.CharField(
        max_length=groups.LONGEST_NAME, help_text="One word. Plans refer to the group by this name."
    )


class Membership(Asked):
    username = serializers.CharField(max_length=150)


class GroupEdge(PeopleEdge):
    def group(self, group_id: int) -> Group:
        return self.load(every_group(), group_id)


class GroupList(GroupEdge, Listing):
    """Every group with its members."""

    serializer_class = GroupSerializer
    queryset = Group.objects.none()

    def get_queryset(self) -> QuerySet[Group]:
        return every_group()

    @extend_schema(request=NewGroup, responses={201: GroupSerializer})
    def post(self, request) -> Response:
        """Adds an empty group."""
        require(self.user, Permission.ADMINISTER)
        try:
            group = groups.add(self.read(NewGroup)["name"], **self.acting())
        except ValidationError as error:
            raise serializers.ValidationError({"name": error.messages}) from error
        return Response(GroupSerializer(self.group(group.pk)).data, status=201)


class GroupDetail(GroupEdge):
    @extend_schema(responses=GroupSerializer)
    def get(self, request, group_id: int) -> Response:
        return Response(GroupSerializer(self.group(group_id)).data)

    @extend_schema(responses={204: None})
    def delete(self, request, group_id: int) -> Response:
        """Removes the group. A plan that requires its members waits until a group of that name exists again."""
        group = self.group(group_id)
        require(self.user, Permission.ADMINISTER)
        groups.remove(group, **self.acting())
        return Response(status=204)


class GroupMembers(GroupEdge):
    @extend_schema(
        request=Membership,
        responses={201: GroupSerializer, 200: OpenApiResponse(GroupSerializer, "The person was already a member.")},
    )
    def post(self, request, group_id: int) -> Response:
        """Adds a person to the group."""
        group = self.group(group_id)
        require(self.user, Permission.ADMINISTER)
        person = User.objects.filter(username=self.read(Membership)["username"]).first()
        if person is None:
            raise serializers.ValidationError({"username": "No person has this name."})
        require_recent_sign_in(request)
        status = 201
        try:
            groups.join(group, person, **self.acting())
        except AlreadyIn:
            status = 200
        return Response(GroupSerializer(self.group(group_id)).data, status=status)


class GroupMember(GroupEdge):
    @extend_schema(responses={204: None})
    def delete(self, request, group_id: int, person_id: int) -> Response:
        """Removes a person from the group. Approvals that they gave as a member become void within seconds."""
        group = self.group(group_id)
        person = self.load(group.user_set.all(), person_id)
        require(self.user, Permission.ADMINISTER)
        groups.leave(group, person, **self.acting())
        return Response(status=204)
