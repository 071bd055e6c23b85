"""The delivery log: the messages, their attempts, and the receivers' answers."""

from django.db.models import QuerySet
from django.utils import timezone
from django_filters import rest_framework as filters
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from edges.rest import Listing, RowSerializer
from fleet.api.filters import Text
from notifications.api.access import NotificationEdge
from notifications.channels.base import DeliveryAct
from notifications.commands.channels import resend
from notifications.models import Delivery, DeliveryState
from notifications.queries import deliveries, traffic_calls
from people.audit_trail import KeyFilter
from rollouts.models import Plan


class DeliverySerializer(RowSerializer):
    channel = serializers.CharField(source="channel_name")
    channel_id = serializers.IntegerField(allow_null=True, help_text="Null: the channel was removed.")
    route = serializers.CharField(source="route_name", help_text="Blank: an update, a test, or a resend.")
    event = serializers.IntegerField(
        source="event_id", allow_null=True, help_text="Id in `events`. Null: no event, such as for a digest or a test."
    )
    key = serializers.CharField(help_text="Key of the subject. Messages with the same key are sent in order.")
    act = serializers.ChoiceField(choices=[act.value for act in DeliveryAct])
    state = serializers.ChoiceField(choices=DeliveryState.values)
    title = serializers.CharField(source="message.title")
    severity = serializers.CharField(source="message.severity")
    digest = serializers.CharField(help_text="SHA-256 hash of the message.")
    next_try_at = serializers.DateTimeField(help_text="Time of the next attempt. Only valid for waiting deliveries.")
    tried_at = serializers.DateTimeField(allow_null=True, help_text="Start of the last attempt. Null: none.")
    status = serializers.IntegerField(help_text="Status code of HTTP or SMTP. 0: no answer.")
    sentence = serializers.CharField(help_text="The receiver's answer, or why there is none.")
    took_ms = serializers.IntegerField(allow_null=True)
    ref = serializers.CharField(help_text="The receiver's key for this message.")
    asked_by = serializers.CharField(help_text="User who sent a test or sent the message again. Blank: an event.")

    class Meta:
        model = Delivery
        fields = (
            "id", "channel", "channel_id", "route", "event", "key", "act", "state", "title", "severity", "digest",
            "created_at", "next_try_at", "attempts", "tried_at", "ended_at", "status", "sentence", "took_ms", "ref",
            "asked_by",
        )  # fmt: skip


class DeliveryFilters(filters.FilterSet):
    channel = Text(field_name="channel_name", label="Name of the channel.")
    state = filters.ChoiceFilter(choices=DeliveryState.choices, label="State of the delivery.")
    event = KeyFilter(field_name="event_id", label="Id of an event.")
    key = Text(label="Key of the subject.")


class DeliveryList(NotificationEdge, Listing):
    """Lists deliveries, newest first. They are kept for 90 days."""

    serializer_class = DeliverySerializer
    queryset = deliveries()
    filterset_class = DeliveryFilters


class TrafficCalls(Listing):
    """Lists the calls of the traffic hook for a plan, newest first, with each answer."""

    serializer_class = DeliverySerializer
    queryset = Delivery.objects.none()

    def get_queryset(self) -> QuerySet[Delivery]:
        return traffic_calls(self.load(Plan.objects.visible_to(self.user), self.kwargs["plan_id"]))


class DeliveryDetail(NotificationEdge):
    @extend_schema(responses=DeliverySerializer)
    def get(self, request, delivery_id: int) -> Response:
        return Response(DeliverySerializer(self.load(deliveries(), delivery_id)).data)


class DeliveryResends(NotificationEdge):
    @extend_schema(request=None, responses={201: DeliverySerializer})
    def post(self, request, delivery_id: int) -> Response:
        """Sends the message once more, as a new delivery."""
        again = resend(self.load(deliveries(), delivery_id), actor=self.actor, now=timezone.now())
        return Response(DeliverySerializer(again).data, status=201)
