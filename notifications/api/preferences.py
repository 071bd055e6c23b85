"""The caller's own preferences."""

from typing import Any

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from edges.rest import Asked, Edge
from health.rules.base import Severity
from notifications.commands.preferences import save_preference
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
    slack_id = serializers.CharField(
        max_length=LONGEST_HANDLE, required=False, default="", allow_blank=True,
        help_text="Your member id in Slack. Messages about your findings mention you.",
    )  # fmt: skip
    teams_id = serializers.CharField(
        max_length=LONGEST_HANDLE, required=False, default="", allow_blank=True,
        help_text="Your user principal name or object id in Microsoft Teams.",
    )  # fmt: skip


class PreferencePut(Asked, PreferenceFields):
    pass


class MyPreferences(Edge):
    @extend_schema(responses=PreferenceFields)
    def get(self, request) -> Response:
        """Returns your own preferences: events by e-mail, and chat handles."""
        require_somewhere(self.user, Permission.SEE)
        return Response(preference_data(Preference.of(self.user, now=timezone.now())))

    @extend_schema(request=PreferencePut, responses=PreferenceFields)
    def put(self, request) -> Response:
        """Changes your own preferences."""
        require_somewhere(self.user, Permission.SEE)
        return Response(preference_data(save_preference(self.user, now=timezone.now(), **self.read(PreferencePut))))


def preference_data(row: Preference) -> dict[str, Any]:
    return dict(PreferenceFields(row).data)
