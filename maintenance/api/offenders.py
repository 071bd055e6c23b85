"""Boards and nodes with several cases in 30 days."""

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from edges.rest import Edge
from maintenance.offenders import offenders


class OffenderSerializer(serializers.Serializer):
    cluster = serializers.CharField()
    board = serializers.CharField(help_text="UUID of the GPU. Blank: the node.")
    serial = serializers.CharField(help_text="Of the board. Blank: no diagnostic reported it.")
    nodes = serializers.ListField(child=serializers.CharField(), help_text="Names, the newest first.")
    cases = serializers.ListField(child=serializers.IntegerField(), source="case_ids")
    repairs = serializers.IntegerField()
    again = serializers.IntegerField(help_text="Cases that began within 7 days of a repair.")
    faults = serializers.ListField(child=serializers.CharField(), help_text="Rules of the findings.")
    last_at = serializers.DateTimeField()


class RepeatOffenders(Edge):
    @extend_schema(responses=OffenderSerializer(many=True))
    def get(self, request) -> Response:
        """Lists boards and nodes with two or more cases in 30 days, the worst first. At most 200."""
        return Response(OffenderSerializer(offenders(self.user, now=timezone.now()).rows, many=True).data)
