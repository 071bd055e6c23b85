"""The caller's own preferences."""

from typing import Any

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from edges.concurrent_edits import LENGTH
from edges.rest import Asked, Edge
from health.rules.base import Severity
from notifications.commands.preferences import mark_of, save_preference
from notifications.models import Preference
from notifications.models.preference import LONGEST_HANDLE
from people.rights import Permission, require_somewhere

MOST = 50
SEVERITIES = [severity.value for severity in Severity]


class PreferenceFields(serializers.Serializer):
    severities = serializers.ListField(
        child=serializers.ChoiceField(choices=SEVERITIES), max_length=MOST,
        help_text="Severities of events that come by e-mail. Empty: none.",
    )  # fmt: skip
    kinds = serializers.ListField(
        child=serializers.CharField(max_length=63), max_length=MOST, required=False, default=list,
        help_text="Keys of rules, or `plan`. Empty: all.",
    )  # fmt: skip
    mail = serializers.CharField(
        max_length=LONGEST_HANDLE, required=False, default="", allow_blank=True, help_text="Your e-mail address."
    )
    zone = serializers.CharField(
        max_length=64, required=False, default="", allow_blank=True,
        help_text="Time zone of the times in your e-mail, beside UTC. Blank: UTC alone.",
    )  # fmt: skip
    slack_id = serializers.CharField(
        max_length=LONGEST_HANDLE, required=False, default="", allow_blank=True,
        help_text="Your member id in Slack. Messages about your findings mention you.",
    )  # fmt: skip
    teams_id = serializers.CharField(
        max_length=LONGEST_HANDLE, required=False, default="", allow_blank=True,
        help_text="Your user principal name or object id in Microsoft Teams.",
    )  # fmt: skip


class PreferenceSerializer(PreferenceFields):
    mark = serializers.SerializerMethodField(help_text="Mark of the preferences, also the ETag; see `was` of PUT.")

    def get_mark(self, row: Preference) -> str:
        return mark_of(row)


class PreferencePut(Asked, PreferenceFields):
    was = serializers.CharField(
        max_length=LENGTH, required=False, default="", allow_blank=True,
        help_text="The `mark` that was read. 409 if the preferences have changed since. Blank: no check.",
    )  # fmt: skip


class MyPreferences(Edge):
    mark_field = "mark"

    @extend_schema(responses=PreferenceSerializer)
    def get(self, request) -> Response:
        """Returns your own preferences: events by e-mail, and chat handles."""
        require_somewhere(self.user, Permission.SEE)
        return Response(preference_data(Preference.of(self.user, now=timezone.now())))

    @extend_schema(request=PreferencePut, responses=PreferenceSerializer)
    def put(self, request) -> Response:
        """Changes your own preferences."""
        require_somewhere(self.user, Permission.SEE)
        return Response(preference_data(save_preference(self.user, now=timezone.now(), **self.read(PreferencePut))))


def preference_data(row: Preference) -> dict[str, Any]:
    return dict(PreferenceSerializer(row).data)
