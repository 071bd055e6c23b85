"""People, their roles and their tokens, for anyone who gives roles."""

from typing import Any

from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.utils import timezone
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.exceptions import NotFound
from rest_framework.response import Response

from edges.rest import KEY, Asked, Edge, Listing, RowSerializer
from people.api.tokens import TokenSerializer, by_hand
from people.models import ApiToken, Role, RoleBinding, User
from people.models.user import ScopeKind
from people.places import FLEET
from people.rights import Permission, require, require_admin_of, require_somewhere, scope_of
from people.roster import accounts
from people.roster.accounts import HasItAlready, revoke
from people.roster.everybody import GivenRole, PersonRow, RolesKnownTo, everybody, may_see_tokens, see_people, tokens_of
from people.sign_in.access import path_for
from people.sign_in.step_up import require_recent_sign_in

LARGEST_ID = 2**63 - 1


class GivenRoleSerializer(serializers.Serializer):
    id = serializers.IntegerField(source="binding.pk")
    role = serializers.ChoiceField(choices=Role.choices, source="binding.role")
    scope = serializers.ChoiceField(choices=ScopeKind.choices, source="binding.scope")
    scope_id = serializers.IntegerField(source="binding.scope_id", help_text="ID of the cluster or pool. 0: the fleet.")
    on = serializers.CharField(
        source="place.name",
        default=None,
        allow_null=True,
        help_text="Place of the role, such as `fleet`, `eu-1` or `eu-1/h200`. Null: the place was removed.",
    )


class PersonSerializer(RowSerializer):
    row = "person"
    has_password = serializers.SerializerMethodField(help_text="True once the person has set a password.")
    last_sign_in_at = serializers.DateTimeField(source="last_login", allow_null=True)
    roles = GivenRoleSerializer(many=True)

    class Meta:
        model = User
        fields = ("id", "username", "is_active", "has_password", "last_sign_in_at", "roles")

    def get_has_password(self, person: User) -> bool:
        return person.has_usable_password()


class PersonTokenSerializer(TokenSerializer):
    """A token without its hint, which only its owner sees."""

    class Meta(TokenSerializer.Meta):
        fields = tuple(name for name in TokenSerializer.Meta.fields if name != "hint")


class NewPerson(Asked):
    username = serializers.CharField(max_length=150, help_text="Letters, digits and @ . + - _ only.")


class PersonChange(Asked):
    is_active = serializers.BooleanField(help_text="False blocks sign-in, tokens and open pages at once.")


class RoleRequest(Asked):
    role = serializers.ChoiceField(choices=Role.choices)
    scope = serializers.ChoiceField(choices=ScopeKind.choices)
    scope_id = serializers.IntegerField(
        min_value=0,
        max_value=LARGEST_ID,
        required=False,
        default=0,
        help_text="ID of the cluster or pool. 0: the fleet.",
    )


class LinkSerializer(serializers.Serializer):
    link = serializers.CharField(help_text="Shown only once. The first person to open it gets the account.")


class PeopleEdge(Edge):
    """A view of people. A caller without any role gets 404."""

    def initial(self, request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        if scope_of(self.user, Permission.SEE).nowhere and scope_of(self.user, Permission.ADMINISTER).nowhere:
            raise NotFound
        require_somewhere(self.user, Permission.ADMINISTER)

    def person(self, person_id: int) -> User:
        return self.load(everybody(), person_id)

    def acting(self) -> dict[str, Any]:
        return {"actor": self.user.username, "now": timezone.now()}

    def shown(self, person_id: int) -> dict[str, Any]:
        (row,) = see_people([self.person(person_id)], RolesKnownTo(self.user))
        return PersonSerializer(row).data


class PersonList(PeopleEdge, Listing):
    """Lists all people, inactive ones last. For admins of the fleet, a cluster or a pool.

    Shows roles only on places that the caller sees.
    """

    serializer_class = PersonSerializer
    queryset = User.objects.none()

    def get_queryset(self) -> QuerySet[User]:
        return everybody()

    def see(self, rows) -> list[PersonRow]:
        return see_people(rows, RolesKnownTo(self.user))

    @extend_schema(request=NewPerson, responses={201: PersonSerializer}, parameters=[KEY])
    def post(self, request) -> Response:
        """Adds a person without a role or a password."""
        require(self.user, Permission.ADMINISTER)
        body = self.read(NewPerson)
        require_recent_sign_in(request)
        try:
            person = accounts.add(body["username"], key=self.key(), **self.acting())
        except ValidationError as error:
            raise serializers.ValidationError({"username": error.messages}) from error
        return Response(self.shown(person.pk), status=201)


class PersonDetail(PeopleEdge):
    @extend_schema(responses=PersonSerializer)
    def get(self, request, person_id: int) -> Response:
        return Response(self.shown(person_id))

    @extend_schema(request=PersonChange, responses=PersonSerializer)
    def patch(self, request, person_id: int) -> Response:
        """Switches a person off or on. Their history stays readable; roles and tokens stay unchanged."""
        person = self.person(person_id)
        require(self.user, Permission.ADMINISTER)
        is_active = self.read(PersonChange)["is_active"]
        if is_active:
            require_recent_sign_in(request)
        act = accounts.switch_on if is_active else accounts.switch_off
        act(person, **self.acting())
        return Response(self.shown(person_id))


class PersonRoles(PeopleEdge):
    @extend_schema(
        request=RoleRequest,
        responses={
            201: GivenRoleSerializer,
            200: OpenApiResponse(GivenRoleSerializer, "The person already had this role."),
        },
    )
    def post(self, request, person_id: int) -> Response:
        """Gives a role. The caller must be admin of the place."""
        person = self.person(person_id)
        body = self.read(RoleRequest)
        place = RolesKnownTo(self.user).places.get((body["scope"], body["scope_id"]))
        if place is None:
            raise serializers.ValidationError({"scope_id": f"No {body['scope']} has this id."})
        require_admin_of(self.user, place)
        require_recent_sign_in(request)
        try:
            given, status = accounts.grant(person, body["role"], place, **self.acting()), 201
        except HasItAlready:
            before = person.bindings.filter(role=body["role"], scope=place.scope, scope_id=place.key).first()
            if before is None:  # another request took the role meanwhile
                raise
            given, status = before, 200
        return Response(GivenRoleSerializer(GivenRole(given, place)).data, status=status)


class PersonRole(PeopleEdge):
    @extend_schema(responses={204: None})
    def delete(self, request, person_id: int, binding_id: int) -> Response:
        """Takes a role. The caller must be admin of the place. Open pages end within five seconds."""
        binding = self.load(RoleBinding.objects.select_related("user").filter(user__pk=person_id), binding_id)
        given = RolesKnownTo(self.user).of(binding)
        if given is None:
            raise NotFound
        require_admin_of(self.user, given.place or FLEET)
        require_recent_sign_in(request)
        accounts.end_role(binding, given.place, **self.acting())
        return Response(status=204)


class PersonPasswordLinks(PeopleEdge):
    @extend_schema(request=None, responses={201: LinkSerializer})
    def post(self, request, person_id: int) -> Response:
        """Creates a link to set a password: valid once, for a day. A token may not call this, since the link gives
        access to its owner's account.
        """
        person = self.person(person_id)
        require(self.user, Permission.ADMINISTER)
        by_hand(self.user)
        require_recent_sign_in(request)
        accounts.note_password(person, "person.password-link", **self.acting())
        person.refresh_from_db()
        return Response({"link": request.build_absolute_uri(path_for(person))}, status=201)


class PersonTokenList(PeopleEdge, Listing):
    """Lists a person's active tokens, newest first. For that person and for admins of the fleet."""

    serializer_class = PersonTokenSerializer
    queryset = ApiToken.objects.none()

    def get_queryset(self) -> QuerySet[ApiToken]:
        person = self.person(self.kwargs["person_id"])
        if not may_see_tokens(person, self.user):
            require(self.user, Permission.ADMINISTER)
        return tokens_of(person)


class PersonToken(PeopleEdge):
    @extend_schema(responses={204: None})
    def delete(self, request, person_id: int, token_id: int) -> Response:
        """Revokes the token at once and for good."""
        token = self.load(ApiToken.objects.filter(user__pk=person_id), token_id)
        require(self.user, Permission.ADMINISTER)
        by_hand(self.user)
        revoke(token, **self.acting())
        return Response(status=204)
