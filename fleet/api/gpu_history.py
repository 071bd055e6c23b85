"""The history of one GPU: its timeline and its pods, as on its page."""

from datetime import timedelta

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from edges.rest import Asked, AskedInstant
from fleet.api.node_history import TimelineAsked, TimelineLineSerializer, asked_in, span_of
from fleet.api.nodes import OfAGpu
from fleet.history.lines import lines_of
from fleet.history.placements import on_gpu

LATELY = timedelta(hours=72)
MOST = 200


class PlacementsAsked(Asked):
    since = AskedInstant(help_text="Only pods that had the GPU after this time. Default: 72 hours ago.")
    most = serializers.IntegerField(required=False, min_value=1, max_value=MOST, default=MOST)


class GpuPlacementSerializer(serializers.Serializer):
    """A pod's time with GPUs of a node, and whether this GPU was one of them."""

    pod = serializers.CharField(source="row", help_text="Pod as `namespace/name`.")
    pod_uid = serializers.CharField(source="row.pod_uid")
    owner_kind = serializers.CharField(
        source="row.owner_kind", help_text="Kind of the pod's controller. Blank: no controller."
    )
    owner_name = serializers.CharField(source="row.owner_name")
    resources = serializers.DictField(source="row.resources", child=serializers.IntegerField())
    is_known = serializers.BooleanField(
        help_text="False: the pod had GPUs of this node, and it is unknown whether this GPU was among them."
    )
    gpus = serializers.ListField(
        child=serializers.IntegerField(),
        help_text=(
            "Known indices of the pod's GPUs. If the list is shorter than the request, the other indices are unknown."
        ),
    )
    since = serializers.DateTimeField(source="row.since")
    until = serializers.DateTimeField(
        source="row.until",
        allow_null=True,
        help_text="End of the pod. Null: the pod exists, or existed at `seen_until`.",
    )
    seen_until = serializers.DateTimeField(
        allow_null=True,
        help_text="Last observation of the pod. Null: the pod still exists, or its end was observed.",
    )
    ended = serializers.CharField(
        source="row.ended", help_text="Final status, such as Completed or Error. Blank: the pod exists, or was removed."
    )


class GpuTimeline(OfAGpu):
    @extend_schema(parameters=[TimelineAsked], responses=TimelineLineSerializer(many=True))
    def get(self, request, node_id: int, index: int) -> Response:
        """Lists events of the GPU and of its whole node, newest first."""
        gpu = self.gpu(node_id, index)
        lines = lines_of(gpu.node, self.user, span_of(asked_in(request, TimelineAsked), gpu=gpu))
        return Response(TimelineLineSerializer(lines, many=True).data)


class GpuPlacements(OfAGpu):
    @extend_schema(parameters=[PlacementsAsked], responses=GpuPlacementSerializer(many=True))
    def get(self, request, node_id: int, index: int) -> Response:
        """Lists pods that had the GPU with their times, and pods of unknown GPUs of its node. Newest first."""
        gpu, now = self.gpu(node_id, index), timezone.now()
        asked = asked_in(request, PlacementsAsked)
        found = on_gpu(gpu, since=asked.get("since", now - LATELY), now=now, most=asked["most"])
        return Response(GpuPlacementSerializer(found, many=True).data)
