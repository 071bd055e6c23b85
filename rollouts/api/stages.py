import django_filters as filters
from django.db.models import Prefetch, QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from edges.rest import Listing
from rollouts.api.base import PlanEdge
from rollouts.api.shapes import KEY_MOST, AnswerShape, ApprovalShape, StageRow, TargetShape, WaveShape
from rollouts.bundles import bundle_for
from rollouts.lifecycle import StageState
from rollouts.models import GateAnswer, Stage, Target

HISTORY_AT_MOST = 200
STORY = (
    "waves",
    "approvals",
    Prefetch("targets", Target.objects.with_holds().select_related("wave")),
    Prefetch("answers", GateAnswer.objects.filter(is_current=True), to_attr="answers_now"),
    Prefetch(
        "answers", GateAnswer.objects.filter(is_current=False).order_by("-pk")[:HISTORY_AT_MOST], "answers_before"
    ),
)


class StageFilters(filters.FilterSet):
    plan = filters.NumberFilter(field_name="plan_id", min_value=1, max_value=KEY_MOST, decimal_places=0)
    state = filters.ChoiceFilter(choices=[(state.value, state.value) for state in StageState])

    class Meta:
        model = Stage
        fields: list[str] = []


class StageShape(StageRow):
    targets = TargetShape(many=True)
    waves = WaveShape(many=True)
    answers = AnswerShape(source="answers_now", many=True, help_text="What each gate says now.")
    history = AnswerShape(
        source="answers_before",
        many=True,
        help_text=f"What gates said before, the newest first, at most {HISTORY_AT_MOST}.",
    )
    approvals = ApprovalShape(many=True)

    class Meta(StageRow.Meta):
        fields = (*StageRow.Meta.fields, "targets", "waves", "answers", "history", "approvals")


class BundleShape(serializers.Serializer):
    """What an approval binds. Send `hash` back with the decision: it proves what was seen."""

    hash = serializers.CharField()
    content = serializers.DictField(help_text="What the hash is of: plan, stage, targets, answers.")
    evidence = serializers.DictField(help_text="The sentences and numbers behind the answers.")


class StageList(Listing):
    serializer_class = StageRow
    filterset_class = StageFilters
    queryset = Stage.objects.none()

    def get_queryset(self) -> QuerySet[Stage]:
        return Stage.objects.visible_to(self.user).select_related("pool").order_by("-plan", "index")


class StageDetail(PlanEdge):
    @extend_schema(responses=StageShape)
    def get(self, request, stage_id: int) -> Response:
        visible = Stage.objects.visible_to(self.user).select_related("pool", "plan")
        return Response(StageShape(self.load(visible.prefetch_related(*STORY), stage_id)).data)


class StageBundle(PlanEdge):
    @extend_schema(responses=BundleShape)
    def get(self, request, stage_id: int) -> Response:
        return Response(BundleShape(bundle_for(self.stage(stage_id))).data)
