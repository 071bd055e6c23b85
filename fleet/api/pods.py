from django.utils import timezone
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from edges.rest import Listing, RowSerializer
from fleet.api.filters import PodFilters
from fleet.api.resources import AmountsField
from fleet.api.serializers import RefSerializer
from fleet.gpu_pods import visible_pods
from fleet.models import Pod
from fleet.queries import PodRow, see_pods
from fleet.states.pod import PodState
from gpu.operands import title_of

STATES = [(state.value, state.value) for state in PodState]


class PodSerializer(RowSerializer):
    cluster = RefSerializer()
    node = RefSerializer(allow_null=True)
    gpus = serializers.IntegerField(
        help_text="Requested units of the resource for whole GPUs. On a node with shared GPUs, a unit is a share."
    )
    resources = AmountsField(help_text="GPU resources of any kind that the pod requests.")
    claims = serializers.ListField(child=serializers.CharField(), help_text="Names of the pod's ResourceClaims.")
    devices = serializers.DictField(
        child=serializers.ListField(child=serializers.CharField()),
        help_text="UUIDs of the pod's devices by resource, as the kubelet reports them. Empty: not reported.",
    )
    labels = serializers.DictField(
        child=serializers.CharField(),
        help_text="Labels of a tenant's pod with or waiting for GPUs. Empty for other pods.",
    )
    status = serializers.CharField(help_text="Status as in `kubectl get pods`: CrashLoopBackOff, Init:1/3, Completed.")
    state = serializers.SerializerMethodField(help_text="Meaning of the status.")
    operand_title = serializers.SerializerMethodField(help_text="Title of the operand. Blank: a tenant's pod.")

    class Meta:
        model = Pod
        fields: tuple[str, ...] = (
            "id", "cluster", "namespace", "name", "uid", "node", "phase", "status", "state", "is_ready", "ready_since",
            "restarts", "waiting_reason", "stuck_container", "last_words", "gpus", "resources", "claims", "devices",
            "labels", "owner_kind", "owner_name", "runtime_class", "priority_class", "has_empty_dir", "operand",
            "operand_title", "image", "created_at", "started_at", "deleted_at", "changed_at",
        )  # fmt: skip

    @extend_schema_field(serializers.ChoiceField(choices=STATES))
    def get_state(self, pod: Pod) -> str:
        return pod.state(now=timezone.now()).value

    def get_operand_title(self, pod: Pod) -> str:
        return title_of(pod.operand)


class PodReasonSerializer(serializers.Serializer):
    key = serializers.CharField(help_text="Identifier of the cause, such as fragmented or cuda_out_of_memory.")
    title = serializers.CharField(help_text="At most 70 characters, with the name of an object.")
    summary = serializers.CharField()
    steps = serializers.ListField(
        child=serializers.CharField(), help_text="Recommended steps, in order. Empty: no action needed."
    )
    sentence = serializers.CharField(help_text="Title and summary in one text.")
    action = serializers.CharField(help_text="The steps in one line.")
    quote = serializers.CharField(help_text="Message in the cluster that shows the cause. Blank: no message.")
    is_wrong = serializers.BooleanField(help_text="False: the state is expected or intended.")


class PodRowSerializer(PodSerializer):
    row = "pod"
    reason = PodReasonSerializer(
        allow_null=True,
        help_text="Reason why a tenant's pod does not run. Null: the pod runs, or the reason is unknown.",
    )
    seen_at = serializers.DateTimeField(allow_null=True)
    freshness = serializers.CharField(help_text="Freshness of the cluster's pods. See `freshness` of the cluster.")

    class Meta(PodSerializer.Meta):
        fields = (*PodSerializer.Meta.fields, "reason", "seen_at", "freshness")


SHOWN = tuple(field.name for field in Pod._meta.concrete_fields)  # noqa: SLF001 - documented, in spite of its name


class PodList(Listing):
    """Lists pods with or waiting for GPUs, and pods of the GPU stack."""

    serializer_class = PodRowSerializer
    filterset_class = PodFilters
    queryset = Pod.objects.none()

    def get_queryset(self):
        if getattr(self, "swagger_fake_view", False):  # the schema needs no database
            return self.queryset
        visible = visible_pods(self.user, now=timezone.now()).select_related("cluster", "node")
        # Only the node's name and reporting state are shown.
        return visible.only(*SHOWN, "cluster__name", "node__name", "node__is_ready").order_by(
            "cluster_id", "namespace", "name"
        )

    def see(self, rows) -> list[PodRow]:
        return see_pods(rows, now=timezone.now())
