from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from fleet.api.nodes import OfAGpu, OfANode
from fleet.api.serializers import RefSerializer
from health.inbox.comparable_gpus import comparable_gpu_of
from health.inbox.comparable_nodes import comparable_node_of


class ComparedSerializer(serializers.Serializer):
    title = serializers.CharField()
    here = serializers.CharField(help_text="The value on the requested node or GPU. Blank: unknown.")
    there = serializers.CharField(help_text="The value on the comparable node or GPU. Blank: unknown.")


class ComparableNodeSerializer(serializers.Serializer):
    node = RefSerializer(allow_null=True, help_text="Null: no comparable exists. The telemetry has its own endpoint.")
    reason = serializers.CharField(help_text="Why this node or GPU was chosen, or why no comparable exists.")
    properties = ComparedSerializer(many=True, help_text="Properties that differ, including labels of the GPU stack.")
    measured = ComparedSerializer(many=True, help_text="GPU measurements of both objects, current and hourly.")
    alike = serializers.ListField(child=serializers.CharField(), help_text="Titles of the properties that are equal.")


class NodeComparable(OfANode):
    @extend_schema(responses=ComparableNodeSerializer)
    def get(self, request, node_id: int) -> Response:
        """Returns a healthy node of the same product, driver, layout and pool, and the differences from this one."""
        comparable = comparable_node_of(self.node(node_id), self.user, now=timezone.now())
        return Response(ComparableNodeSerializer(comparable).data)


class GpuReferenceSerializer(serializers.Serializer):
    node = RefSerializer()
    index = serializers.IntegerField()


class ComparableGpuSerializer(ComparableNodeSerializer):
    node = None  # type: ignore[assignment]
    gpu = GpuReferenceSerializer(
        allow_null=True, help_text="Null: no comparable exists. The telemetry has its own endpoint."
    )


class GpuComparable(OfAGpu):
    @extend_schema(responses=ComparableGpuSerializer)
    def get(self, request, node_id: int, index: int) -> Response:
        """Returns a comparable GPU without a finding, and the differences from this one.

        It is another GPU of the node, or else a GPU of a comparable healthy node.
        """
        comparable = comparable_gpu_of(self.gpu(node_id, index), self.user, now=timezone.now())
        return Response(ComparableGpuSerializer(comparable).data)
