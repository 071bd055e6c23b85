from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from edges.rest import Asked, RowSerializer
from fleet.api.nodes import OfAGpu, OfANode
from health.inbox.hours import HOURS, MOST, hours_of
from health.models import GpuHour


class HoursAsked(Asked):
    hours = serializers.IntegerField(required=False, min_value=1, max_value=MOST, default=HOURS)


class GpuHourSerializer(RowSerializer):
    class Meta:
        model = GpuHour
        fields = (
            "uuid", "gi_id", "index", "seen_s", "busy_s", "utilisation", "tensor", "bandwidth", "temperature",
            "temperature_max", "power_watts", "memory_max_mib", "xids", "allocated_s", "namespace", "workload",
        )  # fmt: skip


class HourFindingSerializer(serializers.Serializer):
    id = serializers.IntegerField()
    rule = serializers.CharField()
    severity = serializers.CharField()
    title = serializers.CharField()


class NodeHourSerializer(serializers.Serializer):
    hour = serializers.DateTimeField(help_text="Start of the hour.")
    gpu_hours_seen = serializers.FloatField(source="seen_h", help_text="GPU-hours with telemetry.")
    gpu_hours_busy = serializers.FloatField(
        source="busy_h", allow_null=True, help_text="GPU-hours under load. Null: the utilisation is unknown."
    )
    gpu_hours_unknown = serializers.FloatField(
        source="unknown_h", min_value=0, help_text="GPU-hours with telemetry but without utilisation."
    )
    gpu_hours_allocated = serializers.FloatField(
        source="allocated_h", allow_null=True,
        help_text="GPU-hours allocated to pods; a lower bound for partitioned GPUs. Null: unknown for a GPU.",
    )  # fmt: skip
    severity = serializers.CharField(help_text="Severity of the worst finding that was open in this hour. Blank: none.")
    findings = HourFindingSerializer(many=True)
    devices = GpuHourSerializer(many=True, help_text="GPUs and MIG slices with telemetry. Empty: no telemetry.")


class NodeHours(OfANode):
    @extend_schema(parameters=[HoursAsked], responses=NodeHourSerializer(many=True))
    def get(self, request, node_id: int) -> Response:
        """Returns the GPU activity and the open findings in each completed hour, oldest first."""
        node = self.node(node_id)
        hours = hours_of(node, hours=_requested_hours(request), now=timezone.now())
        return Response(NodeHourSerializer(hours, many=True).data)


class GpuHours(OfAGpu):
    @extend_schema(parameters=[HoursAsked], responses=NodeHourSerializer(many=True))
    def get(self, request, node_id: int, index: int) -> Response:
        """Returns the activity and the open findings of the GPU in each completed hour, oldest first."""
        gpu = self.gpu(node_id, index)
        hours = hours_of(gpu.node, gpu=gpu, hours=_requested_hours(request), now=timezone.now())
        return Response(NodeHourSerializer(hours, many=True).data)


def _requested_hours(request) -> int:
    asked = HoursAsked(data=request.query_params.dict())
    asked.is_valid(raise_exception=True)
    return asked.validated_data["hours"]
