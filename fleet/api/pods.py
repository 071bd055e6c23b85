from rest_framework import serializers

from fleet.api.filters import PodFilters
from fleet.api.shapes import Ref
from fleet.models import Pod
from fleet.operands import title_of
from people.api.edges import Listing


class PodShape(serializers.ModelSerializer):
    cluster = Ref()
    node = Ref(allow_null=True)
    operand_title = serializers.SerializerMethodField(help_text="Blank: a tenant's pod.")

    class Meta:
        model = Pod
        fields = (
            "id", "cluster", "namespace", "name", "uid", "node", "phase", "is_ready", "ready_since", "restarts",
            "waiting_because", "gpus", "resources", "owner_kind", "owner_name", "has_empty_dir", "operand",
            "operand_title", "image", "created_at", "deleted_at", "changed_at",
        )  # fmt: skip

    def get_operand_title(self, pod: Pod) -> str:
        return title_of(pod.operand)


class PodList(Listing):
    """Pods that hold or want GPUs, and those of the GPU stack."""

    serializer_class = PodShape
    filterset_class = PodFilters
    queryset = Pod.objects.none()

    def get_queryset(self):
        return Pod.objects.visible_to(self.user).select_related("cluster", "node").defer("node__labels")
