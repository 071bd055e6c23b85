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
    state = serializers.SerializerMethodField(
        help_text="Worst state that applies to the node. Reliable only while `freshness` is live."
    )
    unresolved = serializers.IntegerField(
        help_text="Unresolved findings about the node, confirmed or not. Muted findings and notes are omitted."
    )
    critical = serializers.IntegerField(help_text="Number of critical findings in `unresolved`.")
    cordoned_by = serializers.CharField(
        help_text="Field manager that set `spec.unschedulable`, from the API server. Blank: not set, or unknown."
    )
    layout = serializers.CharField(
        help_text="Partitioning and sharing of the GPUs. Equal layouts have equal texts. Blank: no labels."
    )
    capacity = AmountsField(help_text="Capacity by GPU resource. `gpu_capacity` counts only whole GPUs, of any vendor.")
    allocatable = AmountsField()
    expected = AmountsField(help_text="Highest amount of each resource observed under this layout.")
    requested = AmountsField(
        allow_null=True, read_only=True, help_text="Amounts that the node's pods request. Null: pods were never read."
    )
    physical_gpus = serializers.IntegerField(
        allow_null=True,
        read_only=True,
        help_text="Largest number of physical GPUs that the node ever had. Null: unknown.",
    )
    physical_gpus_by_use = UsesSerializer(source="uses", help_text="Physical GPUs by use. Each GPU counts once.")
    gpu_allocated = serializers.IntegerField(allow_null=True)
    slices_allocated = serializers.IntegerField(
        allow_null=True, read_only=True, help_text="Null: pods were never read."
    )
    shares_allocated = serializers.IntegerField(
        allow_null=True, read_only=True, help_text="Null: pods were never read."
    )
    cpu_memory = CpuMemorySerializer()
    unhealthy_gpus = serializers.ListField(
        source="unhealthy",
        child=serializers.CharField(),
        help_text="One sentence for each unhealthy GPU, with the component that reports it.",
    )
    gpus_missing = serializers.IntegerField(
        allow_null=True,
        read_only=True,
        help_text="GPUs, slices or shares that the node once had and that are not allocatable now. "
        "Null: a GPU node that never reported any.",
    )
    missing = serializers.CharField(
        source="missing_in_words",
        help_text="Missing units, such as `1 GPU (4 of its time-slices)`. Blank: no missing units.",
    )
    driver_version = serializers.SerializerMethodField(help_text="Last reported driver version. Null: never reported.")
    seen_at = serializers.DateTimeField(allow_null=True)
    freshness = serializers.CharField(help_text="Freshness of the cluster's nodes. See `freshness` of the cluster.")

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
    status = serializers.CharField(help_text="True, False or Unknown, as in the status of the node.")
    verdict = serializers.ChoiceField(
        ["wrong", "fine", "unknown"],
        help_text="Whether this status is bad for the type. unknown: no known bad status, or the status is Unknown.",
    )
    severity = serializers.CharField(help_text="critical, warning or note. Blank: the verdict is not wrong.")
    reporter = serializers.CharField(help_text="Component that reports the condition, derived from type and reason.")
    message = serializers.CharField(help_text="Reason and message of the condition. Blank: the verdict is fine.")
    recommended_action = serializers.CharField(
        help_text="Action that the message recommends. Blank: no recommendation."
    )
    xids = serializers.ListField(child=serializers.IntegerField(), help_text="Xids that the condition names.")
    since = serializers.DateTimeField(
        allow_null=True, help_text="Time of the last transition. Null: unknown, or the verdict is fine."
    )


class NodeSerializer(NodeRowSerializer):
    labels = serializers.DictField(child=serializers.CharField())
    annotations = serializers.DictField(
        child=serializers.CharField(), help_text="Annotations of the GPU stack and of Quarterdeck."
    )
    taints = TaintSerializer(many=True)
    conditions = NodeConditionSerializer(
        many=True,
        source="reported_conditions",
        help_text="Conditions of detectors, and faults from the kubelet. `Ready` is omitted. Faults come first.",
    )
    booted_at = serializers.DateTimeField(
        allow_null=True, help_text="Time of the last observed change of the boot ID. Null: no change was observed."
    )
    resources = ResourceSerializer(many=True)
    gpus = GpuSerializer(many=True)
    unplaced = UnplacedSerializer(many=True)
    disagreements = serializers.ListField(
        child=serializers.CharField(),
        help_text="Contradictions of the DCGM exporter with claims, kubelet or scheduler, which take precedence. "
        "Also jobs of a batch system on the GPUs, which Kubernetes does not know.",
    )
    exporter = ExporterSerializer(allow_null=True, help_text="Null: no exporter of the node was ever queried.")
    exporter_note = serializers.CharField(
        help_text="Reason why the GPUs of some pods are unknown, and the age of old exporter data. Blank: no message."
    )
    pods = PodSerializer(many=True, allow_null=True, help_text="Null: pods were never read.")
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
