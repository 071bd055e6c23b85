"""One GPU with its allocation, findings and telemetry, as on its page."""

from dataclasses import replace

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from edges.rest import ReportSerializer
from fleet.api.gpus import GpuSerializer
from fleet.api.nodes import OfAGpu
from fleet.api.serializers import FreshnessSerializer, RefSerializer
from fleet.queries import see_gpu
from health.api.telemetry import NodeTelemetrySerializer
from health.models import Finding
from health.models.finding import SEVERITIES
from health.sources.node_telemetry import of_gpu, telemetry_of


class OpenFindingSerializer(ReportSerializer):
    id = serializers.IntegerField()
    rule = serializers.CharField()
    severity = serializers.ChoiceField(choices=SEVERITIES)
    causes = serializers.ListField(child=serializers.CharField(), help_text="Probable causes.")
    since = serializers.DateTimeField()


class ConfirmingFindingSerializer(OpenFindingSerializer):
    confirmed_at = serializers.DateTimeField(help_text="Time at which the finding opens if the fault persists.")


class GpuDetailSerializer(serializers.Serializer):
    gpu = GpuSerializer()
    seen_at = serializers.DateTimeField(allow_null=True, help_text="Last observation of the nodes. Null: never.")
    freshness = serializers.CharField(help_text="Observation state, as in the field `freshness` of a cluster.")
    pods_freshness = FreshnessSerializer(help_text="Age of the pod data, which shows the allocation of the GPU.")
    pools = RefSerializer(many=True)
    driver_version = serializers.CharField(help_text="Driver version of the node. Blank: never reported.")
    driver_unknown_since = serializers.DateTimeField(
        allow_null=True,
        help_text=(
            "Start of the absence of the version label; `driver_version` has its last value. Null: the label exists."
        ),
    )
    findings = OpenFindingSerializer(many=True, help_text="Open findings about this GPU.")
    confirming = ConfirmingFindingSerializer(many=True, help_text="Findings about this GPU that are not confirmed yet.")
    muted = OpenFindingSerializer(many=True, help_text="Muted findings about this GPU and its node as a whole.")
    findings_of_node = OpenFindingSerializer(many=True, help_text="Open findings about its node as a whole.")
    telemetry = NodeTelemetrySerializer(help_text="Telemetry of the GPU and its MIG slices.")


class GpuDetail(OfAGpu):
    @extend_schema(responses=GpuDetailSerializer)
    def get(self, request, node_id: int, index: int) -> Response:
        """Returns one GPU.

        Its history is under its address: `placements`, `timeline`, `hours`, `comparable`, `telemetry/history`.
        """
        gpu, now = self.gpu(node_id, index), timezone.now()
        seen = see_gpu(gpu, user=self.user, now=now)
        known, found = telemetry_of(gpu.node, now=now), Finding.objects.all().around(gpu)
        said = {
            "gpu": seen.allocated,
            "seen_at": seen.seen_at,
            "freshness": seen.freshness,
            "pods_freshness": seen.pods_freshness,
            "pools": seen.pools,
            "driver_version": gpu.node.driver_version,
            "driver_unknown_since": gpu.node.driver_unknown_since,
            "findings": found.open,
            "confirming": found.confirming,
            "muted": found.muted,
            "findings_of_node": found.of_node,
            "telemetry": replace(known, devices=of_gpu(known.devices, gpu)),
        }
        return Response(GpuDetailSerializer(said).data)
