from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from fleet.api.nodes import OfAGpu, OfANode
from fleet.api.serializers import RefSerializer
from health.inbox.comparable_gpus import gpu_twin_of
from health.inbox.comparable_nodes import twin_of


class TwinDifferenceSerializer(serializers.Serializer):
    title = serializers.CharField()
    here = serializers.CharField(help_text="Blank: nothing is known.")
    there = serializers.CharField(help_text="Blank: nothing is known.")


class TwinSerializer(serializers.Serializer):
    node = RefSerializer(allow_null=True, help_text="Null: there is none. Its telemetry is at its own address.")
    reason = serializers.CharField(help_text="Why it is this one, or why there is none.")
    properties = TwinDifferenceSerializer(many=True, help_text="Those that differ, labels of the GPU stack among them.")
    measured = TwinDifferenceSerializer(many=True, help_text="What GPUs say now and said by the hour, of both.")
    alike = serializers.ListField(child=serializers.CharField(), help_text="Titles of properties that do not differ.")


class NodeTwin(OfANode):
    @extend_schema(responses=TwinSerializer)
    def get(self, request, node_id: int) -> Response:
        """Returns a healthy node of the same product, driver, layout and pool, and the differences from this one."""
        twin = twin_of(self.node(node_id), self.user, now=timezone.now())
        return Response(TwinSerializer(twin).data)


class TwinGpuSerializer(serializers.Serializer):
    node = RefSerializer()
    index = serializers.IntegerField()


class GpuTwinSerializer(TwinSerializer):
    node = None  # type: ignore[assignment]
    gpu = TwinGpuSerializer(allow_null=True, help_text="Null: there is none. Its telemetry is at its own address.")


class GpuTwinDetail(OfAGpu):
    @extend_schema(responses=GpuTwinSerializer)
    def get(self, request, node_id: int, index: int) -> Response:
        """Returns a comparable GPU without a finding, and the differences from this one.

        It is another GPU of the node, or else a GPU of a comparable healthy node.
        """
        twin = gpu_twin_of(self.gpu(node_id, index), self.user, now=timezone.now())
        return Response(GpuTwinSerializer(twin).data)
