from rest_framework import serializers

from fleet.api.filters import GpuFilters
from fleet.api.shapes import Ref
from fleet.models import Gpu
from people.api.edges import Listing


class GpuShape(serializers.ModelSerializer):
    """Which GPU is taken or sick is not here: Kubernetes counts them per node and does not say which."""

    cluster = Ref(source="node.cluster")
    node = Ref()
    uuid = serializers.SerializerMethodField(help_text="Null: nothing has named it yet.")

    class Meta:
        model = Gpu
        fields = ("id", "cluster", "node", "index", "product", "memory_mib", "uuid")

    def get_uuid(self, gpu: Gpu) -> str | None:
        return gpu.uuid or None


class GpuList(Listing):
    serializer_class = GpuShape
    filterset_class = GpuFilters
    queryset = Gpu.objects.none()

    def get_queryset(self):
        return Gpu.objects.visible_to(self.user).select_related("node__cluster").defer("node__labels")
