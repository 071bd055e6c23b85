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
from gpu.compatibility import Support
from health.stack import ChecklistAnswer, DriverVersionRole, checklist_of, read_stack
from health.stack.causes import Weight
from health.stack.combinations import Comparison, look

ANSWERS = [(answer.value, answer.value) for answer in Support]


class CauseSerializer(serializers.Serializer):
    """The cause of an operand's fault."""

    key = serializers.CharField(help_text="Stable: kernel_headers, image_no_such_tag, tainted, waits, …")
    weight = serializers.ChoiceField(choices=[(weight.value, weight.value) for weight in Weight])
    title = serializers.CharField(help_text="At most 70 characters, with the name of an object.")
    summary = serializers.CharField()
    steps = serializers.ListField(child=serializers.CharField(), help_text="What to do, in order; empty: nothing.")
    sentence = serializers.CharField(help_text="Title and summary.")
    action = serializers.CharField(help_text="The steps in one line.")
    quote = serializers.CharField(help_text="The line that tells it, as it was written; blank: no line does.")


class DesiredSerializer(serializers.Serializer):
    version = serializers.CharField(help_text="Blank: the operator's own default, or nothing asks.")
    by = serializers.CharField(help_text="The object that asks; blank: nothing does.")


class OperandSerializer(serializers.Serializer):
    operand = serializers.CharField()
    title = serializers.CharField()
    daemon_set = serializers.CharField(help_text="namespace/name; blank: none selects this node.")
    is_wanted = serializers.BooleanField(help_text="Whether it should run here.")
    is_ready = serializers.BooleanField()
    is_current = serializers.BooleanField(allow_null=True, help_text="Of the newest template. Null: not known.")
    ready_since = serializers.DateTimeField(allow_null=True)
    not_ready_since = serializers.DateTimeField(allow_null=True, help_text="Null: it is ready, or has no pod.")
    restarts = serializers.IntegerField(allow_null=True)
    pod = serializers.CharField(help_text="namespace/name; blank: none.")
    status = serializers.CharField(help_text="Of the pod, as `kubectl get pods` spells it; blank: no pod.")
    is_silent = serializers.BooleanField(help_text="The node does not report: all this is the last that it said.")
    image = serializers.CharField(help_text="Of the pod; without one, of the template it would be made from.")
    version = serializers.CharField(help_text="Of the pod's image; blank: no pod.")
    desired = DesiredSerializer()
    disagreement = serializers.CharField(help_text="In a sentence; blank: the pod is of what is asked for.")
    reason = serializers.CharField(help_text="The sentence of its cause; blank: it is as it should be.")
    cause = CauseSerializer(allow_null=True)
    log = serializers.ListField(child=serializers.CharField(), help_text="The last lines of what crashed.")
    log_refused = serializers.CharField(help_text="Why those could not be read; blank: they could, or nobody tried.")


class DriverVersionReportSerializer(serializers.Serializer):
    role = serializers.ChoiceField(choices=[(role.value, role.value) for role in DriverVersionRole])
    by = serializers.CharField(help_text="The place that says it.")
    version = serializers.CharField(help_text="Blank: it says none.")
    note = serializers.CharField(help_text="What the version does not tell, or why there is none.")
    is_known = serializers.BooleanField(help_text="False: it no longer says; the version is the last it did.")


class DriverSerializer(serializers.Serializer):
    """The driver version that each source reports."""

    sources = DriverVersionReportSerializer(many=True)
    is_pre_installed = serializers.BooleanField(help_text="Installed on the host: observed, never managed.")
    running = serializers.CharField(help_text="As the node last said; blank: it never did.")
    running_unknown_since = serializers.DateTimeField(allow_null=True)
    pod_image = serializers.CharField(help_text="The driver pod's tag; blank: no pod.")
    desired = serializers.CharField(help_text="Blank: the operator's own default, or not known.")
    desired_by = serializers.CharField()
    disagreement = serializers.CharField(help_text="In a sentence; blank: those that speak agree.")


class NodeStackSerializer(serializers.Serializer):
    operands = OperandSerializer(many=True)
    driver = DriverSerializer()
    as_of = serializers.DateTimeField(
        allow_null=True, help_text="When its pods were last seen, where that is not now. Null: they are, or never were."
    )
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
    key = serializers.CharField(help_text="Stable: hardware, labels, not-skipped, taints, scheduled, driver-pod, …")
    title = serializers.CharField()
    answer = serializers.ChoiceField(choices=[(answer.value, answer.value) for answer in ChecklistAnswer])
    sentence = serializers.CharField(help_text="The evidence, the cause, or why it is unknown.")
    steps = serializers.ListField(child=serializers.CharField(), help_text="To make it a yes, in order.")


class NodeChecklistSerializer(serializers.Serializer):
    items = ChecklistItemSerializer(many=True, help_text="In the order in which the stack comes up.")
    as_of = serializers.DateTimeField(allow_null=True, help_text="When its pods were last seen. Null: now, or never.")


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
    subject = serializers.CharField(source="verdict.subject", help_text="What was compared.")
    answer = serializers.ChoiceField(source="verdict.answer", choices=ANSWERS)
    sentence = serializers.CharField(source="verdict.sentence")
    action = serializers.CharField(source="verdict.action", help_text="Blank: there is nothing to do.")
    nodes = serializers.IntegerField(help_text="GPU nodes it is about.")
    source = serializers.CharField(  # type: ignore[assignment]
        source="verdict.source", help_text="An address, or repository:path@ref. Blank: no entry of the matrix fits."
    )
    read_on = serializers.DateField(source="verdict.read_on", allow_null=True, help_text="When the source said so.")


class CompatibilitySerializer(serializers.Serializer):
    """The versions in this cluster, compared with those validated by NVIDIA, worst first."""

    worst = serializers.ChoiceField(choices=ANSWERS, allow_null=True)
    matrix_read_on = serializers.DateField(help_text="Newer releases are not in the matrix.")
    matrix_newest_operator = serializers.CharField()
    nodes = serializers.IntegerField(help_text="GPU nodes that were compared.")
    combinations = serializers.IntegerField(source="groups")
    is_truncated = serializers.BooleanField(help_text="There are more combinations; only the largest were compared.")
    verdicts = VerdictSerializer(source="lines", many=True)
    freshness = serializers.SerializerMethodField(help_text="Of the nodes that were compared.")

    @extend_schema_field(FreshnessSerializer)
    def get_freshness(self, _: Comparison) -> dict[str, Any]:
        return dict(FreshnessSerializer(self.context["freshness"]).data)


class CompatibilityDetail(Edge):
    @extend_schema(responses=CompatibilitySerializer)
    def get(self, request, cluster_id: int) -> Response:
        cluster, now = self.load(Cluster.objects.visible_to(self.user), cluster_id), timezone.now()
        _, compared = look(cluster, user=self.user, today=now.date())
        freshness = load_cluster_freshness(cluster, now=now).by_kind[NODES]
        return Response(CompatibilitySerializer(compared, context={"freshness": freshness}).data)
