"""External rollouts in clusters of the mode `follow`; read-only."""

from collections.abc import Iterable, Sequence
from typing import Any

import django_filters as filters
from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.response import Response

from edges.rest import Edge, EvidenceItemSerializer, Listing, RowSerializer
from health.api.suspects import SuspectsSerializer
from rollouts.lifecycle import ExternalRolloutState, TargetState
from rollouts.models import ExternalGateAnswer, ExternalRollout, ExternalRolloutNode
from rollouts.queries.external_rollouts import SHOWN, ShownExternalRollout, rollout_suspects, shown_external_rollouts

TOLD = [state for state in ExternalRolloutState if state is not ExternalRolloutState.STANDING]


class ExternalRolloutFilters(filters.FilterSet):
    cluster = filters.CharFilter(field_name="cluster__name", max_length=63, label="Name of the cluster.")
    state = filters.ChoiceFilter(choices=[(state.value, state.value) for state in TOLD])


class ExternalRolloutProgressSerializer(serializers.Serializer):
    """The number of nodes in each state; the parts add up to `total`."""

    total = serializers.IntegerField()
    before = serializers.IntegerField(help_text="Nodes that have not begun and that the operator may change.")
    held = serializers.IntegerField(help_text="Nodes that have not begun and that the skip label keeps unchanged.")
    changing = serializers.IntegerField()
    changed = serializers.IntegerField()
    failed = serializers.IntegerField()
    gone = serializers.IntegerField(help_text="Nodes that were removed or deselected. Not in `total`.")


class ExternalGateAnswerSerializer(RowSerializer):
    """The present result of a gate."""

    evidence = EvidenceItemSerializer(many=True)
    steps = serializers.ListField(child=serializers.CharField())

    class Meta:
        model = ExternalGateAnswer
        fields = ("gate", "answer", "title", "summary", "evidence", "steps", "nodes", "since", "at")


class ExternalRolloutSerializer(serializers.Serializer):
    """An external rollout."""

    id = serializers.IntegerField(source="rollout.pk")
    cluster = serializers.CharField(source="rollout.cluster.name")
    object_kind = serializers.CharField(source="rollout.object_kind")
    object_name = serializers.CharField(source="rollout.object_name")
    from_version = serializers.CharField(source="rollout.from_version", help_text="Previous version. Blank: unknown.")
    to_version = serializers.CharField(source="rollout.to_version")
    driven_by = serializers.CharField(
        source="rollout.driven_by",
        help_text="The tool that owns the driver object, such as Helm or a GitOps tool. Blank: none.",
    )
    state = serializers.CharField(source="rollout.state", help_text=f"One of {', '.join(TOLD)}.")
    why = serializers.CharField(
        help_text="Reason of the state. If a gate fails, it says that a plan would have halted."
    )
    advice = serializers.CharField(
        help_text="Recommended action if a gate fails, or if no workload has tested the new driver. Blank: none."
    )
    is_unproven = serializers.SerializerMethodField(help_text="Nothing has tested the new driver on its nodes.")
    began_at = serializers.DateTimeField(source="rollout.began_at")
    ended_at = serializers.DateTimeField(source="rollout.ended_at", allow_null=True)
    seen_at = serializers.DateTimeField(source="rollout.seen_at", help_text="Last evaluation of current data.")
    progress = ExternalRolloutProgressSerializer()
    gates = ExternalGateAnswerSerializer(source="answers", many=True)

    def get_is_unproven(self, shown: ShownExternalRollout) -> bool:
        return shown.unproven is not None


class ExternalRolloutDetailSerializer(ExternalRolloutSerializer):
    suspects = serializers.SerializerMethodField(help_text="Null: no node failed.")
    failed_before = ExternalGateAnswerSerializer(
        source="rollout.failed_before", many=True, help_text="Past gate failures, newest first, at most 20."
    )

    @extend_schema_field(SuspectsSerializer(allow_null=True))
    def get_suspects(self, shown: ShownExternalRollout) -> dict[str, Any] | None:
        found = rollout_suspects(shown)
        return dict(SuspectsSerializer(found).data) if found else None


class ExternalRolloutNodeSerializer(RowSerializer):
    """A node of an external rollout."""

    node = serializers.CharField(source="node_name")
    state = serializers.SerializerMethodField(help_text=f"One of {', '.join(SHOWN.values())}.")
    since = serializers.DateTimeField(source="state_since")
    is_known_before = serializers.SerializerMethodField(help_text="The node was observed before its change began.")

    class Meta:
        model = ExternalRolloutNode
        fields = ("node", "state", "since", "is_known_before", "is_lost")

    def get_state(self, node: ExternalRolloutNode) -> str:
        return SHOWN[TargetState(node.state)]

    def get_is_known_before(self, node: ExternalRolloutNode) -> bool:
        return node.baseline is not None


class ExternalRolloutEdge(Edge):
    def visible(self) -> QuerySet[ExternalRollout]:
        return ExternalRollout.objects.visible_to(self.user).told().select_related("cluster")


class ExternalRolloutList(ExternalRolloutEdge, Listing):
    """Lists external rollouts, the newest first."""

    serializer_class = ExternalRolloutSerializer
    filterset_class = ExternalRolloutFilters
    queryset = ExternalRollout.objects.none()

    def get_queryset(self) -> QuerySet[ExternalRollout]:
        return self.visible()

    def see(self, rows: Sequence[ExternalRollout]) -> Iterable[ShownExternalRollout]:
        return shown_external_rollouts(rows)


class ExternalRolloutDetail(ExternalRolloutEdge):
    @extend_schema(responses=ExternalRolloutDetailSerializer)
    def get(self, request, rollout_id: int) -> Response:
        (shown,) = shown_external_rollouts([self.load(self.visible(), rollout_id)])
        return Response(ExternalRolloutDetailSerializer(shown).data)


class ExternalRolloutNodes(ExternalRolloutEdge, Listing):
    """Lists the nodes of an external rollout by name."""

    serializer_class = ExternalRolloutNodeSerializer
    queryset = ExternalRolloutNode.objects.none()

    def get_queryset(self) -> QuerySet[ExternalRolloutNode]:
        return ExternalRolloutNode.objects.filter(rollout=self.load(self.visible(), self.kwargs["rollout_id"]))
