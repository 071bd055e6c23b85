from collections.abc import Iterable

from django.utils import timezone
from rest_framework import serializers

from edges.rest import Flat, Listing, RowSerializer
from fleet.allocation.allocations import AllocatedGpu
from fleet.api.filters import GpuFilters
from fleet.api.resources import AllocationSerializer
from fleet.api.serializers import RefSerializer
from fleet.models import Gpu
from fleet.queries import see_gpus


class GpuSerializer(RowSerializer):
    """A GPU. Its partitioning and sharing are attributes of its node."""

    row = "gpu"
    cluster = RefSerializer(source="node.cluster")
    node = RefSerializer()
    uuid = serializers.SerializerMethodField(help_text="Null: no source has reported the UUID.")
    may_have_more = serializers.BooleanField(
        help_text="True: the node's GPUs are shared, and the GPUs of some pods are unknown."
    )
    allocations = AllocationSerializer(
        many=True,
        allow_null=True,
        help_text="Null: unknown whether this GPU is allocated, or pods were never read.",
    )
    taints = serializers.ListField(
        child=serializers.CharField(), help_text="Reasons why the DRA driver accepts no new pod on the GPU."
    )

    class Meta:
        model = Gpu
        fields = (
            "id",
            "cluster",
            "node",
            "index",
            "product",
            "memory_mib",
            "uuid",
            "allocations",
            "may_have_more",
            "taints",
        )

    def get_uuid(self, gpu: Flat) -> str | None:
        return gpu.uuid or None


class GpuList(Listing):
    serializer_class = GpuSerializer
    filterset_class = GpuFilters
    queryset = Gpu.objects.none()

    def get_queryset(self):
        visible = Gpu.objects.visible_to(self.user).select_related("node__cluster")
        # Ordered by keys, as the index is: ordering by the cluster's name would sort 40,000 rows for a hundred.
        return visible.defer("node__labels", "node__annotations", "node__taints").order_by("node_id", "index")

    def see(self, rows) -> Iterable[AllocatedGpu]:
        return see_gpus(rows, now=timezone.now())
