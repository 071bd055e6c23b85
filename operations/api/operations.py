"""Operations on nodes: a POST starts one, a worker carries it out, a GET shows its progress."""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import django_filters as filters
from django.db.models import QuerySet
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from edges.rest import KEY, Asked, Edge, Listing, RowSerializer
from fleet.api.serializers import RefSerializer
from fleet.models import Cluster, Node
from operations import commands
from operations.api.option_fields import field_of
from operations.kinds import KINDS
from operations.lifecycle import OperationState
from operations.models import Operation, OperationNode
from operations.models.operation import HELD_SINCE
from operations.refusals import BadOperation
from operations.steps import OPTIONS, STEPS
from people.rights import Permission, require, require_somewhere
from people.sign_in.step_up import require_recent_sign_in

KEY_MOST = 2**53
STATES = [(state.value, state.value) for state in OperationState]
KIND_CHOICES = [(kind, kind) for kind in KINDS]
HELD_PROGRESS = f"Pending, while another controller has the node: `{HELD_SINCE}`."


class OperationSerializer(RowSerializer):
    cluster = RefSerializer()
    kind = serializers.CharField(help_text=f"One of {', '.join(KINDS)}.")
    steps = serializers.ListField(child=serializers.CharField(), help_text=f"In order, of {', '.join(STEPS)}.")
    state = serializers.ChoiceField(choices=STATES)
    preview = serializers.DictField(help_text="The impact at the start of the operation.")
    options = serializers.DictField()

    class Meta:
        model = Operation
        fields = ("id", "cluster", "kind", "steps", "state", "state_since", "state_reason", "waiting_for", "reason",
                  "asked_by", "asked_at", "options", "preview", "looked_at")  # fmt: skip


class OperationNodeSerializer(RowSerializer):
    step = serializers.SerializerMethodField(help_text="The step in progress, or the last step.")
    progress = serializers.DictField(
        help_text=" ".join((HELD_PROGRESS, *(step.progress for step in STEPS.values() if step.progress)))
    )

    class Meta:
        model = OperationNode
        fields = ("node_name", "node_uid", "state", "state_since", "step", "step_since", "reason", "progress")

    def get_step(self, node: OperationNode) -> str:
        steps = node.operation.steps
        return str(steps[node.step]) if node.step < len(steps) else ""


class OperationImpactSerializer(serializers.Serializer):
    """The impact now, from rows."""

    sentence = serializers.CharField()
    nodes = serializers.IntegerField()
    gpus = serializers.IntegerField(allow_null=True, help_text="Number of GPUs. Null: unknown for at least one node.")
    gpu_pods = serializers.IntegerField(help_text="Number of pods with GPUs. A drain evicts them.")
    other_pods = serializers.IntegerField(help_text="Pods without GPUs. A drain evicts at most this many.")
    cost = serializers.CharField(help_text="GPU-hours of the work that tenants lose. Blank: none.")
    jobs = serializers.ListField(child=serializers.CharField(), help_text="Jobs that would end completely.")
    services = serializers.ListField(
        child=serializers.CharField(), help_text="Services that lose most of their Ready nodes, the worst first."
    )
    pools = serializers.ListField(
        child=serializers.CharField(), help_text="Nodes in service before and after, by pool."
    )
    domains = serializers.ListField(
        child=serializers.CharField(), help_text="The same by zone, rack and NVLink domain, the emptiest first."
    )
    losses = serializers.ListField(child=serializers.CharField(), help_text="Effects that cannot be undone.")
    unmanaged = serializers.ListField(child=serializers.CharField(), help_text="Pods without a controller.")
    empty_dir = serializers.ListField(child=serializers.CharField(), help_text="Pods that lose emptyDir data.")
    budgets = serializers.ListField(child=serializers.CharField(), help_text="Budgets that allow no eviction now.")
    vetoes = serializers.ListField(
        child=serializers.CharField(), help_text="Reasons against this change. Each reason prevents the start."
    )
    approvals = serializers.ListField(
        child=serializers.CharField(), help_text="Why another person has to approve it. Empty: no approval needed."
    )
    waits = serializers.ListField(child=serializers.CharField(), help_text="Why nodes wait after the start.")
    warnings = serializers.ListField(child=serializers.CharField())
    products = serializers.ListField(child=serializers.CharField(), help_text="GPUs and nodes by product.")
    headroom = serializers.CharField(help_text="GPUs of evicted pods and free GPUs elsewhere. Blank: none needed.")
    pending = serializers.ListField(
        child=serializers.CharField(), help_text="Evicted pods that find no room, by whole GPUs alone."
    )
    duration = serializers.CharField(help_text="Duration of past drains in the cluster. Blank: no drain.")
    needs_typed_count = serializers.BooleanField(help_text="The start needs `typed_count`.")


class OperationAsked(Asked):
    cluster = serializers.IntegerField(min_value=1, max_value=KEY_MOST, help_text="Id of the cluster.")
    kind = serializers.ChoiceField(choices=KIND_CHOICES)
    nodes = serializers.ListField(
        child=serializers.CharField(max_length=64), allow_empty=False, max_length=commands.MOST_NODES,
        help_text="UIDs of nodes of this cluster. An empty list is never “all”.",
    )  # fmt: skip

    def get_fields(self) -> dict[str, serializers.Field]:
        options = {name: field_of(option) for name, option in OPTIONS.items() if option.in_preview}
        return super().get_fields() | options


class OperationRequest(OperationAsked):
    reason = serializers.CharField(max_length=1000, help_text="The reason, stored permanently.")
    typed_count = serializers.IntegerField(
        min_value=1, max_value=commands.MOST_NODES, required=False, default=None, allow_null=True,
        help_text="Number of nodes, to confirm. Required above 10 nodes, or 5 % of a pool.",
    )  # fmt: skip
    seen = serializers.CharField(
        max_length=2000, required=False, default="", allow_blank=True,
        help_text="The sentence of the preview. 409 with the impact now if it is another one. Blank: not compared. "
        "cancel-breakfix requires it.",
    )  # fmt: skip
    finding = serializers.IntegerField(
        min_value=1, max_value=KEY_MOST, required=False, default=None, allow_null=True,
        help_text="Id of a finding of one of the nodes. Its node gets a case with the operation, unless it has one.",
    )  # fmt: skip

    def get_fields(self) -> dict[str, serializers.Field]:
        return super().get_fields() | {name: field_of(option) for name, option in OPTIONS.items()}


class ReasonAsked(Asked):
    reason = serializers.CharField(max_length=1000, help_text="The reason, stored permanently.")


class OperationEdge(Edge):
    def operation(self, operation_id: int) -> Operation:
        return self.load(Operation.objects.visible_to(self.user).select_related("cluster"), operation_id)

    def chosen(self, asked: dict[str, Any]) -> tuple[Cluster, Sequence[Node]]:
        """Returns the cluster and its nodes, in the order of the request.

        :raises BadOperation: when a node is not in the cluster, or the caller may not see it
        """
        cluster = self.load(Cluster.objects.visible_to(self.user), asked.pop("cluster"))
        require(self.user, Permission.RUN, cluster_id=cluster.pk, where=f"cluster {cluster.name}")
        uids = list(dict.fromkeys(asked.pop("nodes")))
        nodes = {node.uid: node for node in Node.objects.visible_to(self.user).filter(cluster=cluster, uid__in=uids)}
        if missing := [uid for uid in uids if uid not in nodes]:
            raise BadOperation(("nodes", f"{cluster.name} has no node with UID {missing[0][:64]}."))
        return cluster, [nodes[uid] for uid in uids]


class OperationFilters(filters.FilterSet):
    cluster = filters.CharFilter(field_name="cluster__name", max_length=63, label="Name of the cluster.")
    state = filters.ChoiceFilter(choices=STATES)
    node = filters.CharFilter(field_name="nodes__node_name", max_length=253, label="Name of a node.", distinct=True)


class OperationList(OperationEdge, Listing):
    """Lists operations, the newest first."""

    serializer_class = OperationSerializer
    filterset_class = OperationFilters
    queryset = Operation.objects.none()

    def get_queryset(self) -> QuerySet[Operation]:
        return Operation.objects.visible_to(self.user).select_related("cluster").order_by("-pk")

    @extend_schema(request=OperationRequest, responses={202: OperationSerializer}, parameters=[KEY])
    def post(self, request) -> Response:
        """Starts an operation. A worker carries it out; `nodes` shows the result of each node.

        Its state is `proposed` if another person has to approve it first: above 20 % of a production pool, and for the
        kind delete-pod.
        """
        require_somewhere(self.user, Permission.RUN)
        asked = self.read(OperationRequest)
        cluster, nodes = self.chosen(asked)
        given = {name: asked.pop(name) for name in ("kind", "reason", "typed_count", "seen")}
        operation = commands.start(
            cluster, nodes=nodes, actor=self.user.get_username(), options=asked, key=self.key(), now=timezone.now(),
            **given,
        )  # fmt: skip
        return Response(OperationSerializer(operation).data, status=202)


class OperationPreviews(OperationEdge):
    http_method_names = ["post", "options"]

    @extend_schema(request=OperationAsked, responses=OperationImpactSerializer)
    def post(self, request) -> Response:
        """Returns the impact of an operation now. Changes nothing."""
        require_somewhere(self.user, Permission.RUN)
        asked = self.read(OperationAsked)
        cluster, nodes = self.chosen(asked)
        kind, actor = asked.pop("kind"), self.user.get_username()
        impact = commands.preview(cluster, kind, nodes, actor=actor, now=timezone.now(), options=asked)
        return Response(OperationImpactSerializer(impact.as_kept).data)


class OperationDetail(OperationEdge):
    @extend_schema(responses=OperationSerializer)
    def get(self, request, operation_id: int) -> Response:
        return Response(OperationSerializer(self.operation(operation_id)).data)


class OperationNodes(OperationEdge, Listing):
    """Lists the nodes of an operation with their results."""

    serializer_class = OperationNodeSerializer
    queryset = OperationNode.objects.none()

    def get_queryset(self) -> QuerySet[OperationNode]:
        return self.operation(self.kwargs["operation_id"]).nodes.select_related("operation").order_by("position")


class OperationVerb(OperationEdge):
    http_method_names = ["post", "options"]
    permission: ClassVar[Permission] = Permission.RUN
    act: ClassVar[Callable[..., None]]

    @extend_schema(request=ReasonAsked, responses={204: None})
    def post(self, request, operation_id: int) -> Response:
        operation = self.operation(operation_id)
        cluster = operation.cluster
        require(self.user, self.permission, cluster_id=cluster.pk, where=f"cluster {cluster.name}")
        self.act(operation, actor=self.user.get_username(), now=timezone.now(), **self.read(ReasonAsked))
        return Response(status=204)


class ApprovalAsked(ReasonAsked):
    seen = serializers.CharField(
        max_length=2000, required=False, default="", allow_blank=True,
        help_text="The sentence of the impact that you saw. 409 with the impact now if it is another one. Blank: the "
        "impact in `preview`.",
    )  # fmt: skip


class OperationApprovals(OperationEdge):
    """Starts a proposed operation. Whoever asked for it cannot approve it."""

    http_method_names = ["post", "options"]

    @extend_schema(request=ApprovalAsked, responses={204: None})
    def post(self, request, operation_id: int) -> Response:
        operation = self.operation(operation_id)
        cluster = operation.cluster
        require(self.user, Permission.APPROVE, cluster_id=cluster.pk, where=f"cluster {cluster.name}")
        require_recent_sign_in(request)
        commands.approve(operation, actor=self.user.get_username(), now=timezone.now(), **self.read(ApprovalAsked))
        return Response(status=204)


class OperationPauses(OperationVerb):
    """Pauses: nothing more is written until it is resumed."""

    permission = Permission.STOP

    act = staticmethod(commands.pause)


class OperationResumptions(OperationVerb):
    """Resumes a paused operation."""

    act = staticmethod(commands.resume)


class OperationRetries(OperationVerb):
    """Starts the failed nodes again. 409 while a person's pause holds: resume the operation first."""

    act = staticmethod(commands.retry)


class OperationCancellations(OperationVerb):
    """Ends the operation. Nodes without a result are left as they are; quarantines stay."""

    permission = Permission.STOP

    act = staticmethod(commands.cancel)


VERB_VIEWS: dict[str, type[OperationVerb]] = {
    "pauses": OperationPauses,
    "resumptions": OperationResumptions,
    "retries": OperationRetries,
    "cancellations": OperationCancellations,
}
