"""External rollouts in clusters of the mode `follow`; read-only."""

from collections.abc import Iterable, Sequence

import django_filters as filters
from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from edges.rest import Edge, Listing, RowSerializer
from rollouts.lifecycle import FollowedState, TargetState
from rollouts.models import FollowedAnswer, FollowedNode, FollowedRollout
from rollouts.queries.external_rollouts import SHOWN, FollowedOnPage, followed_on_page

TOLD = [state for state in FollowedState if state is not FollowedState.STANDING]


class FollowedFilters(filters.FilterSet):
    cluster = filters.CharFilter(field_name="cluster__name", max_length=63, label="Name of the cluster.")
    state = filters.ChoiceFilter(choices=[(state.value, state.value) for state in TOLD])

    class Meta:
        model = FollowedRollout
        fields: list[str] = []


class FollowedProgressSerializer(serializers.Serializer):
    """The number of nodes in each state; the parts add up to `total`."""

    total = serializers.IntegerField()
    before = serializers.IntegerField(help_text="Not begun, and nothing keeps the operator off them.")
    held = serializers.IntegerField(help_text="Not begun, and the skip label keeps the operator off them.")
    changing = serializers.IntegerField()
    changed = serializers.IntegerField()
    failed = serializers.IntegerField()
    gone = serializers.IntegerField(help_text="No nodes of the object any more; in no other number.")


class FollowedAnswerSerializer(RowSerializer):
    """The present result of a gate."""

    measured = serializers.DictField(source="numbers", help_text="What was compared with what.")

    class Meta:
        model = FollowedAnswer
        fields = ("gate", "answer", "reason", "measured", "nodes", "since", "at")


class FollowedSerializer(serializers.Serializer):
    """An external rollout."""

    id = serializers.IntegerField(source="rollout.pk")
    cluster = serializers.CharField(source="rollout.cluster.name")
    object_kind = serializers.CharField(source="rollout.object_kind")
    object_name = serializers.CharField(source="rollout.object_name")
    from_version = serializers.CharField(source="rollout.from_version", help_text="Blank: not known.")
    to_version = serializers.CharField(source="rollout.to_version")
    driven_by = serializers.CharField(
        source="rollout.driven_by", help_text="What the object is marked as owned by (Helm, GitOps). Blank: nothing."
    )
    state = serializers.CharField(source="rollout.state", help_text=f"One of {', '.join(TOLD)}.")
    why = serializers.CharField(help_text="Why it is where it is; where a gate fails, that a plan would have halted.")
    advice = serializers.CharField(
        help_text="What to do where a gate fails, or what would test the new driver. Blank: none."
    )
    is_unproven = serializers.SerializerMethodField(help_text="Nothing has tested the new driver on its nodes.")
    began_at = serializers.DateTimeField(source="rollout.began_at")
    ended_at = serializers.DateTimeField(source="rollout.ended_at", allow_null=True)
    seen_at = serializers.DateTimeField(source="rollout.seen_at", help_text="When its cluster was last seen for it.")
    progress = FollowedProgressSerializer()
    gates = FollowedAnswerSerializer(source="answers", many=True)

    def get_is_unproven(self, shown: FollowedOnPage) -> bool:
        return shown.unproven is not None


class FollowedDetailSerializer(FollowedSerializer):
    failed_before = FollowedAnswerSerializer(
        source="rollout.failed_before", many=True, help_text="Failures that are over, the newest first: 20 at most."
    )


class FollowedNodeSerializer(RowSerializer):
    """A node of an external rollout."""

    node = serializers.CharField(source="node_name")
    state = serializers.SerializerMethodField(help_text=f"One of {', '.join(SHOWN.values())}.")
    since = serializers.DateTimeField(source="state_since")
    is_known_before = serializers.SerializerMethodField(help_text="Whether it was seen before it began to change.")

    class Meta:
        model = FollowedNode
        fields = ("node", "state", "since", "is_known_before", "is_lost")

    def get_state(self, node: FollowedNode) -> str:
        return SHOWN[TargetState(node.state)]

    def get_is_known_before(self, node: FollowedNode) -> bool:
        return node.baseline is not None


class FollowedEdge(Edge):
    def visible(self) -> QuerySet[FollowedRollout]:
        return FollowedRollout.objects.visible_to(self.user).told().select_related("cluster")


class FollowedList(FollowedEdge, Listing):
    """Lists external rollouts, the newest first."""

    serializer_class = FollowedSerializer
    filterset_class = FollowedFilters
    queryset = FollowedRollout.objects.none()

    def get_queryset(self) -> QuerySet[FollowedRollout]:
        return self.visible()

    def see(self, rows: Sequence[FollowedRollout]) -> Iterable[FollowedOnPage]:
        return followed_on_page(rows)


class FollowedDetail(FollowedEdge):
    @extend_schema(responses=FollowedDetailSerializer)
    def get(self, request, rollout_id: int) -> Response:
        (shown,) = followed_on_page([self.load(self.visible(), rollout_id)])
        return Response(FollowedDetailSerializer(shown).data)


class FollowedNodes(FollowedEdge, Listing):
    """Lists the nodes of an external rollout by name."""

    serializer_class = FollowedNodeSerializer
    queryset = FollowedNode.objects.none()

    def get_queryset(self) -> QuerySet[FollowedNode]:
        return FollowedNode.objects.filter(rollout=self.load(self.visible(), self.kwargs["rollout_id"]))
