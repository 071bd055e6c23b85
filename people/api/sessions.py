"""The sessions of the caller, and of others for admins of the fleet."""

from django.db.models import QuerySet
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import NotFound
from rest_framework.response import Response

from edges.rest import Edge, Listing, RowSerializer
from people.api.people import PeopleEdge
from people.api.tokens import by_hand
from people.models import BrowserSession
from people.rights import Permission, require
from people.roster.sessions import end_sessions, sessions_of


class SessionRowSerializer(RowSerializer):
    """A session. It ends at `expires_at`, however much it is used."""

    id = serializers.CharField(source="public_id")
    expires_at = serializers.DateTimeField(source="expire_date")
    is_current = serializers.SerializerMethodField(help_text="True for the session of this request.")

    class Meta:
        model = BrowserSession
        fields = ("id", "browser", "address", "signed_in_at", "last_used_at", "expires_at", "is_current")

    def get_is_current(self, session: BrowserSession) -> bool:
        return bool(session.session_key == self.context["request"].session.session_key)


class SessionList(Listing):
    """Lists the caller's own sessions, the last used first."""

    serializer_class = SessionRowSerializer
    queryset = BrowserSession.objects.none()

    def get_queryset(self) -> QuerySet[BrowserSession]:
        return sessions_of(self.user, now=timezone.now())

    @extend_schema(operation_id="sessions_destroy_others", responses={204: None})
    def delete(self, request) -> Response:
        """Ends all own sessions but the one of this request. A token may not call this."""
        by_hand(self.user)
        now = timezone.now()
        others = sessions_of(self.user, now=now).exclude(session_key=request.session.session_key)
        end_sessions(self.user, others, actor=self.user.username, now=now)
        return Response(status=204)


class SessionDetail(Edge):
    @extend_schema(responses={204: None})
    def delete(self, request, session_id: str) -> Response:
        """Ends one of the caller's own sessions. A token may not call this."""
        by_hand(self.user)
        now = timezone.now()
        named = sessions_of(self.user, now=now).filter(public_id=session_id)
        if not end_sessions(self.user, named, actor=self.user.username, now=now):
            raise NotFound
        return Response(status=204)


class PersonSessionList(PeopleEdge, Listing):
    """Lists a person's sessions, the last used first. For admins of the fleet."""

    serializer_class = SessionRowSerializer
    queryset = BrowserSession.objects.none()

    def get_queryset(self) -> QuerySet[BrowserSession]:
        person = self.person(self.kwargs["person_id"])
        require(self.user, Permission.ADMINISTER)
        return sessions_of(person, now=timezone.now())

    @extend_schema(operation_id="people_sessions_destroy_all", responses={204: None})
    def delete(self, request, person_id: int) -> Response:
        """Ends all sessions of a person. Their tokens stay valid; switch the person off to end both."""
        person = self.person(person_id)
        require(self.user, Permission.ADMINISTER)
        end_sessions(person, sessions_of(person, now=timezone.now()), **self.acting())
        return Response(status=204)


class PersonSession(PeopleEdge):
    @extend_schema(responses={204: None})
    def delete(self, request, person_id: int, session_id: str) -> Response:
        """Ends one session of a person."""
        person = self.person(person_id)
        require(self.user, Permission.ADMINISTER)
        named = sessions_of(person, now=timezone.now()).filter(public_id=session_id)
        if not end_sessions(person, named, **self.acting()):
            raise NotFound
        return Response(status=204)
