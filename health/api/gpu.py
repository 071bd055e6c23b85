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
    confirmed_at = serializers.DateTimeField(help_text="When it opens, if it is still so by then.")


class GpuDetailSerializer(serializers.Serializer):
    gpu = GpuSerializer()
    seen_at = serializers.DateTimeField(allow_null=True, help_text="When the nodes of its cluster were last observed.")
    freshness = serializers.CharField(help_text="See a cluster's `freshness`.")
    pods_freshness = FreshnessSerializer(help_text="Of who has it.")
    pools = RefSerializer(many=True)
    driver_version = serializers.CharField(help_text="Of its node; blank: nothing ever said it.")
    driver_unknown_since = serializers.DateTimeField(
        allow_null=True, help_text="Since when its label is gone, and `driver_version` what it was. Null: it is there."
    )
    findings = OpenFindingSerializer(many=True, help_text="That are open of it.")
    confirming = ConfirmingFindingSerializer(many=True, help_text="What rules suspect of it, not confirmed yet.")
    muted = OpenFindingSerializer(many=True, help_text="Of it and of its node as a whole: nobody is told of them.")
    findings_of_node = OpenFindingSerializer(many=True, help_text="That are open of its node as a whole.")
    telemetry = NodeTelemetrySerializer(help_text="Of the board and its slices.")


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
