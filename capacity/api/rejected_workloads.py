"""The workloads whose new pods are rejected at creation, as on the page of pods."""

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from capacity.pods.rejected_workloads import SHOWN_AT_MOST, rejected_workloads
from edges.rest import Edge


class RejectedWorkloadSerializer(serializers.Serializer):
    cluster = serializers.CharField(source="finding.cluster.name")
    workload = serializers.CharField(source="finding.subject", help_text="Kind, namespace and name.")
    missing_pods = serializers.IntegerField(source="missing", allow_null=True, help_text="Null: not known.")
    summary = serializers.CharField(source="finding.summary")
    causes = serializers.ListField(source="finding.causes", child=serializers.CharField())
    steps = serializers.ListField(source="finding.steps", child=serializers.CharField())
    since = serializers.DateTimeField(source="finding.since")
    finding = serializers.IntegerField(source="finding.pk")


class RejectedWorkloadsSerializer(serializers.Serializer):
    workloads = serializers.IntegerField()
    shown = RejectedWorkloadSerializer(many=True, help_text=f"The oldest {SHOWN_AT_MOST} at most.")
    unread_clusters = serializers.ListField(
        source="unread",
        child=serializers.CharField(),
        help_text="Not checked now: their lines are as last seen.",
    )
    hidden_clusters = serializers.ListField(
        source="hidden", child=serializers.CharField(), help_text="Clusters of which you see pools alone."
    )


class RejectedWorkloadList(Edge):
    @extend_schema(responses=RejectedWorkloadsSerializer)
    def get(self, request) -> Response:
        """Returns the workloads whose new pods the API server rejects. Such a pod never exists."""
        return Response(RejectedWorkloadsSerializer(rejected_workloads(self.user, now=timezone.now())).data)
