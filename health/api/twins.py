from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from fleet.api.nodes import OfANode
from fleet.api.serializers import RefSerializer
from health.inbox.twins import twin_of


class TwinDifferenceSerializer(serializers.Serializer):
    title = serializers.CharField()
    here = serializers.CharField(help_text="Blank: nothing is known.")
    there = serializers.CharField(help_text="Blank: nothing is known.")


class TwinSerializer(serializers.Serializer):
    node = RefSerializer(allow_null=True, help_text="Null: there is none. Its telemetry is at its own address.")
    because = serializers.CharField(help_text="Why it is this one, or why there is none.")
    properties = TwinDifferenceSerializer(many=True, help_text="Those that differ, labels of the GPU stack among them.")
    measured = TwinDifferenceSerializer(many=True, help_text="What GPUs say now and said by the hour, of both.")
    alike = serializers.ListField(child=serializers.CharField(), help_text="Titles of properties that do not differ.")


class NodeTwin(OfANode):
    @extend_schema(responses=TwinSerializer)
    def get(self, request, node_id: int) -> Response:
        """A healthy node of the same product, driver, layout and pool, and how this one differs from it."""
        twin = twin_of(self.node(node_id), self.user, now=timezone.now())
        return Response(TwinSerializer(twin).data)
