"""Channels: where notifications go. No answer contains a secret."""

from typing import Any

from django.utils import timezone
from drf_spectacular.utils import OpenApiResponse, extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.response import Response

from edges.concurrent_edits import LENGTH
from edges.rest import KEY, Asked, Listing, RowSerializer
from notifications.api.access import NotificationEdge
from notifications.api.deliveries import DeliverySerializer
from notifications.channels import CHANNELS
from notifications.commands.channels import (
    MOST_HEARTBEAT_MIN,
    add_channel,
    change_channel,
    mark_of,
    remove_channel,
    send_test,
)
from notifications.models import AuditFormat, Channel, ChannelState
from notifications.queries import ChannelRow, channel_rows
from notifications.rounds.transport import CHANNEL_SECRETS
from people.rights import Permission, why_not

KINDS = [(kind.key, kind.title) for kind in CHANNELS.values()]
STATES = [(state, state) for state in (*ChannelState.values, "off")]


class SilenceSerializer(serializers.Serializer):
    key = serializers.CharField(help_text="Key of the alert, as `quarterdeck/INSTANCE/finding/7`.")
    by = serializers.CharField()
    comment = serializers.CharField()
    until = serializers.DateTimeField()


class NotificationChannelSerializer(RowSerializer):
    row = "channel"
    kind = serializers.ChoiceField(choices=KINDS)
    secret_from = serializers.CharField(allow_null=True, help_text="The place of its secret. Null: only admins see it.")
    recipients = serializers.ListField(child=serializers.CharField(), help_text="Mail addresses, or a Slack channel.")
    state = serializers.ChoiceField(choices=STATES)
    since = serializers.DateTimeField(source="state_since")
    sentence = serializers.CharField(help_text="The receiver's error message. Blank: no error.")
    delivered_at = serializers.DateTimeField(allow_null=True, help_text="Last successful delivery. Null: never.")
    paused_until = serializers.DateTimeField(allow_null=True, help_text="End of a pause after a failure. Null: none.")
    heartbeat_at = serializers.DateTimeField(allow_null=True, help_text="Last accepted heartbeat. Null: none.")
    heartbeat_sentence = serializers.CharField(help_text="Why the last heartbeat was not accepted. Blank: it was.")
    audit_format = serializers.ChoiceField(choices=AuditFormat.choices)
    audit_after = serializers.IntegerField(help_text="ID of the last decision that it accepted. 0: none.")
    audit_at = serializers.DateTimeField(allow_null=True, help_text="Last accepted decisions. Null: never.")
    audit_sentence = serializers.CharField(help_text="Why the last decisions were not accepted. Blank: they were.")
    silences = serializers.ListField(
        child=SilenceSerializer(), allow_null=True,
        help_text="Silences of our alerts in an Alertmanager. Null: they were never read.",
    )  # fmt: skip
    silences_at = serializers.DateTimeField(allow_null=True, help_text="When silences were last read. Null: never.")
    mutes_sentence = serializers.CharField(
        help_text="Why mutes were not written as silences. Blank: all written, or none in force."
    )
    silences_sentence = serializers.CharField(help_text="Why the last reading of silences failed. Blank: it did not.")
    waiting = serializers.IntegerField(help_text="Number of messages that are not sent yet.")
    dead = serializers.IntegerField(help_text="Number of messages in the log that were given up and not sent again.")
    routes = serializers.ListField(child=serializers.CharField(), help_text="Names of the routes to this channel.")
    mark = serializers.SerializerMethodField(
        help_text="Mark of settings, also the ETag; see `was` of PATCH. Null: only admins see it."
    )

    class Meta:
        model = Channel
        fields = (
            "id", "name", "kind", "address", "secret_from", "ca_file", "recipients", "zone", "is_on", "heartbeat_min",
            "heartbeat_at", "heartbeat_sentence", "audit_format", "audit_after", "audit_at", "audit_sentence",
            "silences", "silences_at", "silences_sentence", "mutes_sentence",
            "state", "since", "sentence", "delivered_at", "paused_until", "waiting", "dead", "routes", "mark",
            "added_by", "added_at", "changed_at",
        )  # fmt: skip

    def to_representation(self, row: ChannelRow) -> dict[str, Any]:
        said = super().to_representation(row)
        if not self.context["administers"]:
            said |= dict.fromkeys(("secret_from", "mark"))
        return said

    @extend_schema_field(serializers.CharField(allow_null=True))
    def get_mark(self, row: Any) -> str:
        return mark_of(row)


class ChannelFields(Asked):
    address = serializers.CharField(
        max_length=300, required=False, allow_blank=True, help_text="Address. Blank: the default of its kind."
    )
    secret_from = serializers.CharField(
        max_length=300, required=False, allow_blank=True,
        help_text=f"The place of its secret, never the secret: {CHANNEL_SECRETS.places}. The channels that may use "
        f"the secret are listed in {CHANNEL_SECRETS.prefix}NAME{CHANNEL_SECRETS.of_variable} or "
        f"NAME{CHANNEL_SECRETS.of_file}.",
    )  # fmt: skip
    ca_file = serializers.CharField(
        max_length=300, required=False, allow_blank=True, help_text="A CA file in the folder QUARTERDECK_SECRETS_DIR."
    )
    recipients = serializers.ListField(
        child=serializers.CharField(max_length=254),
        max_length=50,
        required=False,
        help_text="Mail addresses, or the id of a Slack channel.",
    )
    zone = serializers.CharField(
        max_length=64, required=False, allow_blank=True,
        help_text="Time zone of the times in messages, beside UTC, as `Europe/Berlin`. Blank: UTC alone.",
    )  # fmt: skip
    heartbeat_min = serializers.IntegerField(
        min_value=0, max_value=MOST_HEARTBEAT_MIN, required=False, help_text="Minutes between heartbeats. 0: none."
    )
    audit_format = serializers.ChoiceField(
        choices=AuditFormat.choices, required=False,
        help_text="Format of decisions of the audit trail, for webhooks and syslog.",
    )  # fmt: skip
    is_on = serializers.BooleanField(required=False)


class NewChannel(ChannelFields):
    name = serializers.CharField(max_length=63, help_text="Letters, digits, - and _ only. It cannot be changed.")
    kind = serializers.ChoiceField(choices=KINDS)


class ChannelChange(ChannelFields):
    was = serializers.CharField(
        max_length=LENGTH, required=False, default="", allow_blank=True,
        help_text="The `mark` that was read. 409 if the settings have changed since. Blank: no check.",
    )  # fmt: skip


class ChannelEdge(NotificationEdge):
    def channel(self, channel_id: int) -> Channel:
        return self.load(Channel.objects.shared(), channel_id)

    def context(self) -> dict[str, Any]:
        return {"administers": not why_not(self.user, Permission.ADMINISTER)}

    def shown(self, channel: Channel, *, status: int = 200) -> Response:
        (row,) = channel_rows([channel])
        return Response(NotificationChannelSerializer(row, context=self.context()).data, status=status)


class ChannelList(ChannelEdge, Listing):
    """Lists the channels by name. The caller must see the whole fleet."""

    serializer_class = NotificationChannelSerializer
    queryset = Channel.objects.shared().order_by("name")

    def see(self, rows) -> list[ChannelRow]:
        return channel_rows(rows)

    def get_serializer_context(self) -> dict[str, Any]:
        return {**super().get_serializer_context(), **self.context()}

    @extend_schema(request=NewChannel, responses={201: NotificationChannelSerializer}, parameters=[KEY])
    def post(self, request) -> Response:
        """Adds a channel. The channel receives nothing until a route uses it."""
        body = self.read(NewChannel)
        channel = add_channel(body.pop("name"), actor=self.actor, now=timezone.now(), key=self.key(), **body)
        return self.shown(channel, status=201)


class ChannelDetail(ChannelEdge):
    mark_field = "mark"

    @extend_schema(responses=NotificationChannelSerializer)
    def get(self, request, channel_id: int) -> Response:
        return self.shown(self.channel(channel_id))

    @extend_schema(request=ChannelChange, responses=NotificationChannelSerializer)
    def patch(self, request, channel_id: int) -> Response:
        """Changes settings. Waiting messages are sent at once with the new settings."""
        channel, body = self.channel(channel_id), self.read(ChannelChange)
        return self.shown(change_channel(channel, actor=self.actor, now=timezone.now(), **body))

    @extend_schema(responses={204: OpenApiResponse(description="Waiting messages are given up. The log stays.")})
    def delete(self, request, channel_id: int) -> Response:
        """Removes a channel that no route uses."""
        remove_channel(self.channel(channel_id), actor=self.actor, now=timezone.now(), was=self.was())
        return Response(status=204)


class ChannelTests(ChannelEdge):
    @extend_schema(request=None, responses={202: DeliverySerializer})
    def post(self, request, channel_id: int) -> Response:
        """Sends a test message once. Its delivery contains the receiver's answer."""
        delivery = send_test(self.channel(channel_id), actor=self.actor, now=timezone.now())
        return Response(DeliverySerializer(delivery).data, status=202)
