from dataclasses import dataclass
from typing import Any

import django_filters as filters
from django.db.models import QuerySet
from django.utils import timezone
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.response import Response

from fleet.api.shapes import Ref
from people.api.edges import Listing, SeenSerializer
from people.rights import Deed
from rollouts.api.base import PlanEdge
from rollouts.api.commands import RESOURCES
from rollouts.api.previews import PreviewShape
from rollouts.api.shapes import KEY_MOST, AnswerShape, ApprovalShape, StageDraftShape, StageRow
from rollouts.lifecycle import PlanState
from rollouts.models import Command, Plan, PlanEvent, Stage
from rollouts.queries import Button, PlanPicture, buttons, plan_picture
from rollouts.steering.drafting import StageDraft, draft, edit, stages_of, suggest_stages
from rollouts.steering.preview import preview

AT_MOST: dict[str, Any] = {"max_length": 50}  # stages; the stubs do not know what `many` takes


class PlanFilters(filters.FilterSet):
    cluster = filters.CharFilter(field_name="cluster__name", max_length=63, label="Name of the cluster.")
    state = filters.ChoiceFilter(choices=[(state.value, state.value) for state in PlanState])
    author = filters.CharFilter(max_length=150)

    class Meta:
        model = Plan
        fields: list[str] = []


class PlanRow(serializers.ModelSerializer):
    cluster = Ref()

    class Meta:
        model = Plan
        fields: tuple[str, ...] = (
            "id", "cluster", "title", "component", "object_kind", "object_name", "from_version", "to_version", "state",
            "state_since", "because", "waiting_for", "author", "last_editor", "created_at", "edited_at", "revision",
            "sealed_at", "content_hash", "is_armed", "armed_since", "put_back_at", "looked_at",
        )  # fmt: skip


class PauseShape(serializers.ModelSerializer):
    by = serializers.CharField(source="actor")

    class Meta:
        model = Command
        fields = ("by", "at", "because")


class HoldsShape(serializers.Serializer):
    """The nodes of the driver object that are kept from changing."""

    held = serializers.IntegerField(help_text="Carry the label, as last read back.")
    to_hold = serializers.IntegerField(help_text="Whose label is not as we want it yet.")
    foreign = serializers.IntegerField(source="foreign_holds", help_text="Held before us, and never ours to let go.")


class ButtonShape(serializers.Serializer):
    """A verb: whether the caller may use it now, and why not."""

    verb = serializers.CharField()
    title = serializers.CharField(source="label")
    is_allowed = serializers.BooleanField()
    why_not = serializers.CharField()
    resource = serializers.SerializerMethodField(help_text="POST to /plans/{id}/{resource}.")

    def get_resource(self, button: Button) -> str:
        return RESOURCES[button.verb]


class StageOnPlan(SeenSerializer, StageRow):
    row = "stage"
    targets_by_state = serializers.DictField(source="seen.counts", child=serializers.IntegerField())
    answers = serializers.SerializerMethodField(help_text="What each gate says now.")
    approvals = ApprovalShape(source="seen.approvals", many=True)

    class Meta(StageRow.Meta):
        fields = (*StageRow.Meta.fields, "targets_by_state", "answers", "approvals")

    @extend_schema_field(AnswerShape(many=True))
    def get_answers(self, stage: Stage) -> list[dict[str, Any]]:
        answers = stage.seen.answers.values()  # type: ignore[attr-defined]
        return list(AnswerShape(answers, many=True).data)


@dataclass(frozen=True)
class PlanSeen:
    picture: PlanPicture
    buttons: list[Button]

    @property
    def plan(self) -> Plan:
        return self.picture.plan

    @property
    def current_stage(self) -> int | None:
        return self.picture.current.stage.pk if self.picture.current else None


class PlanShape(SeenSerializer, PlanRow):
    row = "plan"
    stages = StageOnPlan(source="seen.picture.stages", many=True)
    current_stage = serializers.IntegerField(
        source="seen.current_stage", allow_null=True, help_text="Null: none has its turn."
    )
    pause = PauseShape(source="seen.picture.pause", allow_null=True, help_text="The one in force.")
    holds = HoldsShape(source="seen.picture")
    buttons = ButtonShape(source="seen.buttons", many=True)
    seq = serializers.IntegerField(source="seen.picture.seq", help_text="Of the newest event this was made from.")

    class Meta(PlanRow.Meta):
        fields = (*PlanRow.Meta.fields, "stages", "current_stage", "pause", "holds", "buttons", "seq")


class PlanRequest(serializers.Serializer):
    driver_object = serializers.IntegerField(min_value=1, max_value=KEY_MOST, help_text="Of /driver-objects.")
    title = serializers.CharField(max_length=200, allow_blank=True, required=False, default="")
    to_version = serializers.CharField(max_length=64, help_text="As 580.126.20.")
    stages = StageDraftShape(many=True, help_text="The first must be a canary.", **AT_MOST)


class PlanChange(serializers.Serializer):
    """What is left out stays as it is. `stages` replaces all of them."""

    expected_revision = serializers.IntegerField(
        min_value=1, max_value=2**31 - 1, help_text="The `revision` that was read: somebody else's edit is not lost."
    )
    title = serializers.CharField(max_length=200, required=False)
    to_version = serializers.CharField(max_length=64, required=False)
    stages = StageDraftShape(many=True, required=False, **AT_MOST)


class PlanEventShape(serializers.ModelSerializer):
    stage = Ref(allow_null=True)
    node = serializers.CharField(source="target.node_name", allow_null=True, default=None)

    class Meta:
        model = PlanEvent
        fields = ("id", "at", "what", "was", "to", "actor", "because", "stage", "node")


class PlanList(PlanEdge, Listing):
    serializer_class = PlanRow
    filterset_class = PlanFilters
    queryset = Plan.objects.none()

    def get_queryset(self) -> QuerySet[Plan]:
        return Plan.objects.visible_to(self.user).select_related("cluster").defer("sealed").order_by("-pk")

    @extend_schema(request=PlanRequest, responses={201: PlanShape})
    def post(self, request) -> Response:
        """Draft a plan. Nothing is touched before it is started."""
        asked = self.read(PlanRequest)
        driver_object = self.driver_object(asked.pop("driver_object"))
        self.may(Deed.DRAFT, driver_object)
        stages = [StageDraft(**stage) for stage in asked.pop("stages")]
        plan = draft(
            cluster=driver_object.cluster,
            driver_object=driver_object,
            stages=stages,
            actor=self.user,
            now=timezone.now(),
            **asked,
        )
        return Response(shown(plan, self.user), status=201)


class PlanDetail(PlanEdge):
    @extend_schema(responses=PlanShape)
    def get(self, request, plan_id: int) -> Response:
        return Response(shown(self.plan(plan_id), self.user))

    @extend_schema(request=PlanChange, responses=PlanShape)
    def patch(self, request, plan_id: int) -> Response:
        plan = self.plan(plan_id)
        self.may(Deed.DRAFT, plan)
        asked = self.read(PlanChange)
        stages = [StageDraft(**stage) for stage in asked["stages"]] if "stages" in asked else stages_of(plan)
        plan = edit(
            plan,
            title=asked.get("title", plan.title),
            to_version=asked.get("to_version", plan.to_version),
            stages=stages,
            expected_revision=asked["expected_revision"],
            actor=self.user,
            now=timezone.now(),
        )
        return Response(shown(plan, self.user))


class PlanEventList(PlanEdge, Listing):
    """What happened, the newest first."""

    serializer_class = PlanEventShape
    queryset = PlanEvent.objects.none()

    def get_queryset(self) -> QuerySet[PlanEvent]:
        return self.plan(self.kwargs["plan_id"]).events.select_related("stage", "target")


class PlanPreview(PlanEdge):
    @extend_schema(responses=PreviewShape)
    def get(self, request, plan_id: int) -> Response:
        """What it would do, from what is seen now. Touches nothing."""
        return Response(PreviewShape(preview(self.plan(plan_id), now=timezone.now())).data)


class SuggestedStages(PlanEdge):
    @extend_schema(responses=StageDraftShape(many=True))
    def get(self, request, driver_object_id: int) -> Response:
        """Stages to begin a draft with."""
        stages = suggest_stages(self.driver_object(driver_object_id))
        return Response(StageDraftShape(stages, many=True).data)


def shown(plan: Plan, user) -> dict[str, Any]:
    return PlanShape(PlanSeen(plan_picture(plan), buttons(plan, user))).data
