"""The GPU stack of a node with the causes of its faults, and the compatibility of a cluster's versions."""

from typing import Any

from django.utils import timezone
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.response import Response

from edges.rest import Edge
from fleet.api.nodes import OfANode
from fleet.api.serializers import FreshnessSerializer
from fleet.freshness.cluster import load_cluster_freshness
from fleet.freshness.kinds import NODES, PODS
from fleet.models import Cluster
from gpu.compatibility import Support, the_matrix
from health.stack import ChecklistAnswer, DriverVersionRole, checklist_of, read_stack
from health.stack.causes import Weight
from health.stack.combinations import Comparison, compare_combinations, compare_within_cluster, is_compared

ANSWERS = [(answer.value, answer.value) for answer in Support]


class CauseSerializer(serializers.Serializer):
    """The cause of an operand's fault."""

    key = serializers.CharField(help_text="Stable key: kernel_headers, image_no_such_tag, tainted, waits, …")
    weight = serializers.ChoiceField(choices=[(weight.value, weight.value) for weight in Weight])
    title = serializers.CharField(help_text="The title, with the name of an object. At most 70 characters.")
    summary = serializers.CharField()
    steps = serializers.ListField(child=serializers.CharField(), help_text="Recommended steps, in order. Empty: none.")
    sentence = serializers.CharField(help_text="Title and summary.")
    action = serializers.CharField(help_text="The steps as one line of text.")
    quote = serializers.CharField(help_text="The log line or message that shows the cause, unchanged. Blank: none.")


class DesiredSerializer(serializers.Serializer):
    version = serializers.CharField(help_text="Requested version. Blank: the operator's default, or no request.")
    by = serializers.CharField(help_text="The object that requests the version. Blank: none.")


class OperandSerializer(serializers.Serializer):
    operand = serializers.CharField()
    title = serializers.CharField()
    daemon_set = serializers.CharField(help_text="The DaemonSet, as namespace/name. Blank: none selects this node.")
    is_wanted = serializers.BooleanField(help_text="True: the operand should run on this node.")
    is_ready = serializers.BooleanField()
    is_current = serializers.BooleanField(allow_null=True, help_text="The pod has the newest template. Null: unknown.")
    ready_since = serializers.DateTimeField(allow_null=True)
    not_ready_since = serializers.DateTimeField(allow_null=True, help_text="Null: the operand is ready, or has no pod.")
    restarts = serializers.IntegerField(allow_null=True)
    pod = serializers.CharField(help_text="The pod, as namespace/name. Blank: none.")
    status = serializers.CharField(help_text="Status of the pod, as shown by `kubectl get pods`. Blank: no pod.")
    is_silent = serializers.BooleanField(help_text="The node does not report. The values are the last reported ones.")
    image = serializers.CharField(help_text="Image of the pod. Without a pod, the image of the DaemonSet's template.")
    version = serializers.CharField(help_text="Version of the pod's image. Blank: no pod.")
    desired = DesiredSerializer()
    disagreement = serializers.CharField(
        help_text="How the pod's version differs from the requested one. Blank: equal, or not comparable."
    )
    reason = serializers.CharField(help_text="The sentence of the cause. Blank: the operand has no fault.")
    cause = CauseSerializer(allow_null=True)
    log = serializers.ListField(child=serializers.CharField(), help_text="The last log lines of the crashed container.")
    log_refused = serializers.CharField(help_text="Error while reading the last log lines. Blank: none.")


class DriverVersionReportSerializer(serializers.Serializer):
    role = serializers.ChoiceField(choices=[(role.value, role.value) for role in DriverVersionRole])
    by = serializers.CharField(help_text="The source of this version.")
    version = serializers.CharField(help_text="Blank: the source reports no version.")
    note = serializers.CharField(help_text="Limits of this source, or why it reports no version.")
    is_known = serializers.BooleanField(help_text="False: the source no longer reports. `version` is its last one.")


class DriverSerializer(serializers.Serializer):
    """The driver version that each source reports."""

    sources = DriverVersionReportSerializer(many=True)
    is_pre_installed = serializers.BooleanField(help_text="Installed on the host: observed, never managed.")
    running = serializers.CharField(help_text="Driver version that the node last reported. Blank: never reported.")
    running_unknown_since = serializers.DateTimeField(allow_null=True)
    pod_image = serializers.CharField(help_text="Tag of the driver pod's image. Blank: no pod.")
    desired = serializers.CharField(help_text="The requested version. Blank: the operator's default, or unknown.")
    desired_by = serializers.CharField()
    disagreement = serializers.CharField(help_text="How the sources differ. Blank: all known versions agree.")


class NodeStackSerializer(serializers.Serializer):
    operands = OperandSerializer(many=True)
    driver = DriverSerializer()
    as_of = serializers.DateTimeField(allow_null=True, help_text="Last update of its pods. Null: live, or never.")
    pods_freshness = FreshnessSerializer()


class NodeStackDetail(OfANode):
    """Returns every operand of a node: wanted, ready, version and cause, and the driver version of each source."""

    @extend_schema(responses=NodeStackSerializer)
    def get(self, request, node_id: int) -> Response:
        node, now = self.node(node_id), timezone.now()
        freshness = load_cluster_freshness(node.cluster, now=now)
        quote = {"as_of": freshness.pods_as_of, "pods_freshness": freshness.by_kind[PODS]}
        return Response(NodeStackSerializer({**vars(read_stack(node, now=now)), **quote}).data)


class ChecklistItemSerializer(serializers.Serializer):
    key = serializers.CharField(help_text="Stable key: hardware, labels, not-skipped, taints, scheduled, driver-pod, …")
    title = serializers.CharField()
    answer = serializers.ChoiceField(choices=[(answer.value, answer.value) for answer in ChecklistAnswer])
    sentence = serializers.CharField(help_text="The evidence, the cause, or why the answer is unknown.")
    steps = serializers.ListField(child=serializers.CharField(), help_text="Steps to make the answer yes, in order.")


class NodeChecklistSerializer(serializers.Serializer):
    items = ChecklistItemSerializer(many=True, help_text="Questions in the order in which the GPU stack starts.")
    as_of = serializers.DateTimeField(allow_null=True, help_text="Last update of its pods. Null: live, or never.")


class NodeChecklistDetail(OfANode):
    """Answers the checklist of a GPU node: from the hardware on its bus to GPUs that pods can get."""

    @extend_schema(responses=NodeChecklistSerializer)
    def get(self, request, node_id: int) -> Response:
        node, now = self.node(node_id), timezone.now()
        as_of = load_cluster_freshness(node.cluster, now=now).pods_as_of
        items = checklist_of(node, read_stack(node, now=now))
        return Response(NodeChecklistSerializer({"items": items, "as_of": as_of}).data)


class VerdictSerializer(serializers.Serializer):
    """One result of the matrix. `unknown` never means supported."""

    rule = serializers.CharField(source="verdict.rule")
    subject = serializers.CharField(source="verdict.subject", help_text="Subject of the comparison.")
    answer = serializers.ChoiceField(source="verdict.answer", choices=ANSWERS)
    sentence = serializers.CharField(source="verdict.sentence")
    action = serializers.CharField(source="verdict.action", help_text="The recommended action. Blank: none.")
    nodes = serializers.IntegerField(help_text="Number of GPU nodes in this result.")
    source = serializers.CharField(  # type: ignore[assignment]
        source="verdict.source", help_text="An address, or repository:path@ref. Blank: the matrix has no entry."
    )
    read_on = serializers.DateField(source="verdict.read_on", allow_null=True, help_text="Date of the source.")


class CompatibilitySerializer(serializers.Serializer):
    """The versions in this cluster, compared with those validated by NVIDIA, worst first."""

    worst = serializers.ChoiceField(choices=ANSWERS, allow_null=True)
    matrix_read_on = serializers.DateField(help_text="Date of the matrix. Newer releases are not in it.")
    matrix_newest_operator = serializers.CharField()
    nodes = serializers.IntegerField(help_text="Number of GPU nodes that were compared.")
    combinations = serializers.IntegerField(source="groups")
    is_truncated = serializers.BooleanField(help_text="Only the largest combinations were compared; there are more.")
    verdicts = VerdictSerializer(source="lines", many=True)
    freshness = serializers.SerializerMethodField(help_text="Age of the data of the compared nodes.")

    @extend_schema_field(FreshnessSerializer)
    def get_freshness(self, _: Comparison) -> dict[str, Any]:
        return dict(FreshnessSerializer(self.context["freshness"]).data)


class CompatibilityDetail(Edge):
    @extend_schema(responses=CompatibilitySerializer)
    def get(self, request, cluster_id: int) -> Response:
        cluster, now = self.load(Cluster.objects.visible_to(self.user), cluster_id), timezone.now()
        _, compared = compare_combinations(cluster, user=self.user, today=now.date())
        freshness = load_cluster_freshness(cluster, now=now).by_kind[NODES]
        return Response(CompatibilitySerializer(compared, context={"freshness": freshness}).data)


class NodeVerdictSerializer(VerdictSerializer):
    nodes = None  # type: ignore[assignment]
    is_common = serializers.BooleanField(help_text="True of most GPU nodes of the cluster, too.")


class NodeCompatibilitySerializer(serializers.Serializer):
    """The versions on this node, compared with those validated by NVIDIA, worst first."""

    is_compared = serializers.BooleanField(help_text="False: the node has no GPUs of NVIDIA.")
    matrix_read_on = serializers.DateField(help_text="Date of the matrix. Newer releases are not in it.")
    verdicts = NodeVerdictSerializer(many=True)
    freshness = FreshnessSerializer()


class NodeCompatibilityDetail(OfANode):
    @extend_schema(responses=NodeCompatibilitySerializer)
    def get(self, request, node_id: int) -> Response:
        node, now = self.node(node_id), timezone.now()
        answer = {
            "is_compared": is_compared(node),
            "matrix_read_on": the_matrix().read_on,
            "verdicts": compare_within_cluster(node, user=self.user, today=now.date()),
            "freshness": load_cluster_freshness(node.cluster, now=now).by_kind[NODES],
        }
        return Response(NodeCompatibilitySerializer(answer).data)
