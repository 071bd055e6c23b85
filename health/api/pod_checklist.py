"""The checklist of a GPU pod, as on its page."""

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from edges.rest import Edge
from fleet.models import Pod
from health.api.stacks import ChecklistItemSerializer
from health.pod_checklist.reader import checklist_of_pod


class PodChecklistItemSerializer(ChecklistItemSerializer):
    key = serializers.CharField(help_text="Stable key: requests, node, allocation, events, runtime, cuda-version, …")
    at = serializers.DateTimeField(allow_null=True, help_text="Time of the evidence. Null: the pods were never read.")


class PodChecklistSerializer(serializers.Serializer):
    items = PodChecklistItemSerializer(many=True, help_text="Checks from the GPU request to the end of the program.")
    as_of = serializers.DateTimeField(allow_null=True, help_text="Last update of the pods. Null: live, or never.")


class PodChecklistDetail(Edge):
    @extend_schema(responses=PodChecklistSerializer)
    def get(self, request, pod_id: int) -> Response:
        """Checks why the program of a GPU pod gets no GPU or runs out of memory. `unknown` is never a pass."""
        pods = Pod.objects.visible_to(self.user).select_related("cluster__observer", "node")
        items, freshness = checklist_of_pod(self.load(pods, pod_id), now=timezone.now())
        return Response(PodChecklistSerializer({"items": items, "as_of": freshness.pods_as_of}).data)
