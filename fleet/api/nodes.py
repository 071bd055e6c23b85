from django.db.models import prefetch_related_objects
from django.http import Http404
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from edges.rest import Edge, Listing, RowSerializer
from fleet.api.cpu_memory import CpuMemorySerializer
from fleet.api.filters import NodeFilters
from fleet.api.gpus import GpuSerializer
from fleet.api.pods import PodSerializer
from fleet.api.resources import AmountsField, ExporterSerializer, ResourceSerializer, UnplacedSerializer
from fleet.api.serializers import FreshnessSerializer, RefSerializer, UsesSerializer
from fleet.models import Gpu, Node, NodeEvent
from fleet.queries import NodeLeft, NodeRow, for_rows, gpu_at, node_gone, nodes_for, see_node, see_nodes, timeline
from fleet.states.node import NodeState

STATES = [state.name.lower().replace("_", "-") for state in NodeState]

ROW = (
    "id", "cluster", "pools", "name", "uid", "state", "is_ready", "ready_since", "not_ready_reason",
    "is_unschedulable", "cordoned_by", "kernel", "os_image", "container_runtime", "kubelet_version", "region", "zone",
    "instance_type", "capacity_type", "nvlink_domain", "is_gpu_node", "gpu_vendor", "gpu_product", "gpu_memory_mib",
    "sharing", "sharing_replicas", "mig_strategy", "mig_config", "mig_config_state", "mig_changing_since",
    "mig_is_overdue", "unresolved", "critical", "layout", "capacity", "allocatable", "expected", "requested",
    "unhealthy_gpus", "physical_gpus", "physical_gpus_by_use", "gpu_capacity",
    "gpu_allocatable", "gpu_expected", "gpu_allocated",
    "slices_expected", "slices_allocatable", "slices_allocated", "shares_expected", "shares_allocatable",
    "shares_allocated", "cpu_memory", "gpus_missing", "missing", "driver_version", "driver_unknown_since",
    "upgrade_state", "is_held", "held_by", "driver_owner", "created_at", "changed_at", "seen_at", "freshness",
)  # fmt: skip


class NodeRowSerializer(RowSerializer):
    row = "node"
    cluster = RefSerializer()
    pools = RefSerializer(many=True)
    state = serializers.SerializerMethodField(help_text="The worst that is true of it, while `freshness` is live.")
    unresolved = serializers.IntegerField(help_text="Findings about it, confirmed or not, but no notes.")
    critical = serializers.IntegerField(help_text="How many of `unresolved` are critical.")
    cordoned_by = serializers.CharField(
        help_text="The field manager that set `spec.unschedulable`, as the API server has it; blank: it is not set, or "
        "nothing says by whom."
    )
    layout = serializers.CharField(
        help_text="How its GPUs are partitioned and shared. Equal for equal layouts; blank: no label."
    )
    capacity = AmountsField(help_text="GPU resources only. `gpu_…` count the whole GPUs among them, of any vendor.")
    allocatable = AmountsField()
    expected = AmountsField(help_text="The most of each that was seen under this layout.")
    requested = AmountsField(
        allow_null=True, read_only=True, help_text="By the pods bound to it. Null: pods were never seen."
    )
    physical_gpus = serializers.IntegerField(
        allow_null=True,
        read_only=True,
        help_text="Boards, as many as were ever seen. Null: a GPU node of which nobody says how many.",
    )
    physical_gpus_by_use = UsesSerializer(source="uses", help_text="Each of them once.")
    gpu_allocated = serializers.IntegerField(allow_null=True)
    slices_allocated = serializers.IntegerField(
        allow_null=True, read_only=True, help_text="Null: pods were never seen."
    )
    shares_allocated = serializers.IntegerField(
        allow_null=True, read_only=True, help_text="Null: pods were never seen."
    )
    cpu_memory = CpuMemorySerializer()
    unhealthy_gpus = serializers.ListField(
        source="unhealthy", child=serializers.CharField(), help_text="In a sentence each: who calls which so."
    )
    gpus_missing = serializers.IntegerField(
        allow_null=True,
        read_only=True,
        help_text="There once, and not allocatable now: GPUs, slices or shares, whichever the node offers. "
        "Null: a GPU node that never named any.",
    )
    missing = serializers.CharField(source="missing_in_words", help_text="`1 GPU (4 of its time-slices)`, or blank.")
    driver_version = serializers.SerializerMethodField(help_text="As it last said. Null: it never did.")
    seen_at = serializers.DateTimeField(allow_null=True)
    freshness = serializers.CharField(help_text="See a cluster's `freshness`.")

    class Meta:
        model = Node
        fields: tuple[str, ...] = ROW

    def get_driver_version(self, node: Node) -> str | None:
        return node.driver_version or None

    def get_state(self, node: Node) -> str:
        return STATES[node.state]


class TaintSerializer(serializers.Serializer):
    key = serializers.CharField()
    value = serializers.CharField(allow_blank=True, required=False)
    effect = serializers.CharField()


class NodeConditionSerializer(serializers.Serializer):
    type = serializers.CharField()
    status = serializers.CharField(help_text="True, False or Unknown, as it is written.")
    verdict = serializers.ChoiceField(
        ["wrong", "fine", "unknown"],
        help_text="By the type's polarity; unknown: nobody knows which status is the bad one.",
    )
    severity = serializers.CharField(help_text="critical, warning or note; blank unless wrong.")
    reporter = serializers.CharField(help_text="Who reports it, by its type and reason.")
    message = serializers.CharField(help_text="Its reason and its message; blank of one that is fine.")
    recommended_action = serializers.CharField(help_text="As its message recommends it; blank: it recommends none.")
    xids = serializers.ListField(child=serializers.IntegerField(), help_text="That it names.")
    since = serializers.DateTimeField(allow_null=True, help_text="Null: unknown, or it is fine.")


class NodeSerializer(NodeRowSerializer):
    labels = serializers.DictField(child=serializers.CharField())
    annotations = serializers.DictField(child=serializers.CharField(), help_text="Of the GPU stack, and ours.")
    taints = TaintSerializer(many=True)
    conditions = NodeConditionSerializer(
        many=True,
        source="reported_conditions",
        help_text="Of detectors all, of the kubelet those that report a fault (`Ready` apart), faults first.",
    )
    booted_at = serializers.DateTimeField(
        allow_null=True, help_text="When its boot ID was last seen to be another one; null: it never was."
    )
    resources = ResourceSerializer(many=True)
    gpus = GpuSerializer(many=True)
    unplaced = UnplacedSerializer(many=True)
    disagreements = serializers.ListField(
        child=serializers.CharField(),
        help_text="Of its DCGM exporter with claims and kubelets, which are believed; and each job of a batch system "
        "on its GPUs, of which Kubernetes knows nothing.",
    )
    exporter = ExporterSerializer(allow_null=True, help_text="Null: no DCGM exporter of it was ever asked.")
    exporter_note = serializers.CharField(
        help_text="Why not every pod is placed, or how old that is; blank: nothing to say."
    )
    pods = PodSerializer(many=True, allow_null=True, help_text="Null: pods were never seen.")
    pods_freshness = FreshnessSerializer()
    events = serializers.HyperlinkedIdentityField(view_name="node-events", lookup_url_kwarg="node_id")
    stack = serializers.HyperlinkedIdentityField(view_name="api-node-stack", lookup_url_kwarg="node_id")

    class Meta(NodeRowSerializer.Meta):
        fields = (
            *ROW, "labels", "annotations", "taints", "conditions", "booted_at", "resources", "gpus", "unplaced",
            "disagreements", "exporter", "exporter_note", "pods", "pods_freshness", "events", "stack",
        )  # fmt: skip


class EventSerializer(RowSerializer):
    class Meta:
        model = NodeEvent
        fields = ("id", "at", "kind", "sentence", "detail")


class NodeList(Listing):
    serializer_class = NodeRowSerializer
    filterset_class = NodeFilters
    queryset = Node.objects.none()

    def get_queryset(self):
        prefetch_related_objects([self.user], "bindings")  # read for nodes and for their pools
        return for_rows(Node.objects.visible_to(self.user), user=self.user)

    def see(self, rows) -> list[NodeRow]:
        return see_nodes(rows, now=timezone.now())


class OfANode(Edge):
    """A view of a node. Answers 410 after it left its cluster; `gone` has the time and its last state."""

    may_be_gone = True

    def node(self, node_id: int) -> Node:
        """Returns the node.

        :raises NodeLeft: when it left its cluster
        """
        try:
            return self.load(nodes_for(self.user), node_id)
        except Http404:
            if gone := node_gone(node_id, user=self.user):
                raise NodeLeft(gone) from None
            raise


class OfAGpu(OfANode):
    """A view of a GPU by node and index. Answers 410 after its node left the cluster."""

    def gpu(self, node_id: int, index: int) -> Gpu:
        """Returns the GPU.

        :raises NodeLeft: when its node left the cluster
        """
        found = self.named_gpu(node_id, index)
        if not found.is_listed:
            raise Http404
        return found

    def named_gpu(self, node_id: int, index: int) -> Gpu:
        """Returns the GPU, even if its node does not list it; a finding or an exporter may still name it."""
        found = gpu_at(node_id, index, user=self.user)
        if found is None:
            self.node(node_id)
            raise Http404
        return found


class NodeDetail(OfANode):
    @extend_schema(responses=NodeSerializer)
    def get(self, request, node_id: int) -> Response:
        seen = see_node(self.node(node_id), now=timezone.now())
        return Response(NodeSerializer(seen, context={"request": request}).data)


class NodeEventList(Listing):
    """Lists observed changes of the node and our actions, newest first.

    Also for a node that left its cluster.
    """

    serializer_class = EventSerializer
    queryset = NodeEvent.objects.none()

    def get_queryset(self):
        node_id = self.kwargs["node_id"]
        gone = node_gone(node_id, user=self.user)
        return timeline(gone.row if gone else self.load(Node.objects.visible_to(self.user), node_id))
