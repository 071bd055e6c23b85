"""Routes from events to channels. The first matching route decides."""

from dataclasses import dataclass
from typing import Any

from django.utils import timezone
from drf_spectacular.utils import OpenApiResponse, extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.response import Response

from edges.concurrent_edits import LENGTH
from edges.rest import Asked, Listing, RowSerializer
from fleet.models.pool import WorkloadClass
from health.rules.base import Severity
from notifications.api.access import NotificationEdge
from notifications.commands.refusals import BadRoute
from notifications.commands.routes import MOST_MIN, mark_of, move_route, put_route, remove_route
from notifications.models import Route
from notifications.models.route import ESCALATES_AFTER_MIN, LONGEST_NAME
from notifications.queries import known_kinds, recipients_of, route_places
from notifications.quiet_hours import QuietHours

MOST = 50
SEVERITIES = [severity.value for severity in Severity]


def _names(help_text: str, *, most: int = 130, choices: list[str] | None = None) -> serializers.ListField:
    child = serializers.ChoiceField(choices=choices) if choices else serializers.CharField(max_length=most)
    return serializers.ListField(child=child, max_length=MOST, required=False, default=list, help_text=help_text)


@dataclass(frozen=True)
class RouteRow:
    route: Route
    channels: list[str]
    mark: str

    @classmethod
    def of(cls, route: Route) -> "RouteRow":
        return cls(route, sorted(channel.name for channel in route.channels.all()), mark_of(route))


class QuietSerializer(serializers.Serializer):
    zone = serializers.CharField(max_length=63, help_text="Time zone, as Europe/Berlin.")
    start = serializers.TimeField(format="%H:%M")
    end = serializers.TimeField(format="%H:%M", help_text="Not after the start: on the next day.")
    days = serializers.ListField(
        child=serializers.IntegerField(min_value=0, max_value=6), min_length=1, max_length=7,
        help_text="Days on which they begin. 0: Monday.",
    )  # fmt: skip
    holds_criticals = serializers.BooleanField(default=False, help_text="Whether criticals are held back, too.")


class QuietPut(Asked, QuietSerializer):
    """Quiet hours, as they are stored."""

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        return QuietHours(**super().to_internal_value(data)).written()


class RouteSerializer(RowSerializer):
    row = "route"
    places = _names("Clusters, and pools as `cluster/pool`. Empty: everywhere.")
    severities = _names("Severities. Empty: all.", choices=SEVERITIES)
    kinds = _names("Keys of rules, or `plan`. Empty: all.")
    workload_classes = _names("Workload classes of the node's pools. Empty: all.", choices=WorkloadClass.values)
    channels = serializers.ListField(child=serializers.CharField(), help_text="Names of the channels.")
    escalates_to = serializers.CharField(
        source="escalates_to.name", default="", help_text="The second channel. Blank: none."
    )
    quiet = QuietSerializer(source="quiet_hours", allow_null=True, help_text="Null: none.")
    mark = serializers.CharField(help_text="Mark of the current settings, also the ETag; see `was` of PUT.")

    class Meta:
        model = Route
        fields = (
            "id", "name", "position", "is_catch_all", "places", "severities", "kinds", "workload_classes", "channels",
            "escalates_to", "escalates_after_min", "quiet", "mark", "changed_by", "changed_at",
        )  # fmt: skip


class RoutePut(Asked):
    name = serializers.CharField(max_length=LONGEST_NAME, help_text="The name of the catch-all route never changes.")
    places = _names("Clusters, and pools as `cluster/pool`. Empty: everywhere.")
    severities = _names("Severities. Empty: all.", choices=SEVERITIES)
    kinds = _names("Keys of rules, or `plan`. Empty: all.")
    workload_classes = _names("Workload classes of the node's pools. Empty: all.", choices=WorkloadClass.values)
    channels = _names("Names of the channels. Empty: nobody is notified.", most=63)
    escalates_to = serializers.CharField(
        max_length=63, required=False, default="", allow_blank=True,
        help_text="The second channel, for messages that are not delivered or not answered. Blank: none.",
    )  # fmt: skip
    escalates_after_min = serializers.IntegerField(
        min_value=1, max_value=MOST_MIN, required=False, default=ESCALATES_AFTER_MIN,
        help_text="Minutes without an acknowledgement, mute or decision.",
    )  # fmt: skip
    quiet = QuietPut(required=False, allow_null=True, default=None, help_text="Null: no quiet hours.")
    was = serializers.CharField(
        max_length=LENGTH, required=False, default="", allow_blank=True,
        help_text="The `mark` that was read. 409 if the route has changed since. Blank: no check.",
    )  # fmt: skip


class RouteMove(Asked):
    up = serializers.BooleanField(help_text="true: move the route up. false: move it down.")


class RecipientsQuestion(Asked):
    where = serializers.CharField(max_length=130, help_text="A cluster, or a pool as `cluster/pool`.")
    severity = serializers.ChoiceField(choices=SEVERITIES)
    kind = serializers.CharField(max_length=63, help_text="The key of a rule, or `plan`, `operation` or `case`.")
    at = serializers.DateTimeField(required=False, help_text="Time of the event. Without it: now.")


class RecipientsSerializer(serializers.Serializer):
    route = serializers.CharField(source="route.name", default="", help_text="Blank: no route names traffic.")
    channels = serializers.SerializerMethodField(help_text="Names of the channels. Empty: nobody would be notified.")
    held_until = serializers.DateTimeField(
        allow_null=True, help_text="End of the quiet hours that hold it back. Null: sent at once."
    )
    second = serializers.CharField(source="second.name", default="", help_text="The second channel. Blank: none.")
    sentence = serializers.CharField()

    @extend_schema_field(serializers.ListField(child=serializers.CharField()))
    def get_channels(self, recipients: Any) -> list[str]:
        return [channel.name for channel in recipients.channels]


class RouteEdge(NotificationEdge):
    def route(self, route_id: int) -> Route:
        return self.load(Route.in_order(), route_id)

    def shown(self, route: Route, *, status: int = 200) -> Response:
        return Response(RouteSerializer(RouteRow.of(route)).data, status=status)


class RouteList(RouteEdge, Listing):
    """Lists the routes in their order. The last one matches everything and is always there."""

    serializer_class = RouteSerializer
    queryset = Route.objects.none()

    def get_queryset(self):
        return Route.in_order().select_related("escalates_to").prefetch_related("channels")

    def see(self, rows) -> list[RouteRow]:
        return [RouteRow.of(route) for route in rows]

    @extend_schema(request=RoutePut, responses={201: RouteSerializer})
    def post(self, request) -> Response:
        """Adds a route before the last one."""
        route = put_route(None, actor=self.actor, now=timezone.now(), **self.read(RoutePut))
        return self.shown(route, status=201)


class RouteDetail(RouteEdge):
    mark_field = "mark"

    @extend_schema(responses=RouteSerializer)
    def get(self, request, route_id: int) -> Response:
        return self.shown(self.route(route_id))

    @extend_schema(request=RoutePut, responses=RouteSerializer)
    def put(self, request, route_id: int) -> Response:
        """Changes a route. The last route matches everything, whatever is sent."""
        route = put_route(self.route(route_id), actor=self.actor, now=timezone.now(), **self.read(RoutePut))
        return self.shown(route)

    @extend_schema(responses={204: OpenApiResponse(description="Events that matched this route go to later routes.")})
    def delete(self, request, route_id: int) -> Response:
        """Removes a route. The last route stays."""
        remove_route(self.route(route_id), actor=self.actor, now=timezone.now(), was=self.was())
        return Response(status=204)


class RouteMoves(RouteEdge):
    @extend_schema(request=RouteMove, responses=RouteSerializer)
    def post(self, request, route_id: int) -> Response:
        """Moves a route one place up or down."""
        move_route(self.route(route_id), up=self.read(RouteMove)["up"], actor=self.actor, now=timezone.now())
        return self.shown(self.route(route_id))


class RecipientsPreview(NotificationEdge):
    @extend_schema(request=RecipientsQuestion, responses=RecipientsSerializer)
    def post(self, request) -> Response:
        """Returns the recipients of an event. Sends nothing."""
        asked = {"at": timezone.now(), **self.read(RecipientsQuestion)}
        if asked["where"] not in route_places():
            raise BadRoute("where", "There is no such cluster or pool.")
        if asked["kind"] not in known_kinds():
            raise BadRoute("kind", "There is no such rule.")
        return Response(RecipientsSerializer(recipients_of(**asked)).data)
