from dataclasses import dataclass
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from edges.rest import Asked, Flat, RowSerializer
from fleet.api.serializers import RefSerializer
from rollouts.api.previews import PreflightCheckSerializer, PreviewSerializer
from rollouts.api.serializers import (
    KEY_MOST,
    AnswerSerializer,
    ApprovalSerializer,
    StageDraftSerializer,
    StageRowSerializer,
)
from rollouts.checks import Check
from rollouts.commands.duration import Duration
from rollouts.commands.hold_progress import HoldProgress
from rollouts.commands.preview import Preview
from rollouts.models import Command, GateAnswer, Plan, PlanEvent
from rollouts.queries.plan_view import Button, PlanOnPage, pending_stop_of

AT_MOST: dict[str, Any] = {"max_length": 50}  # stages; the stubs do not know what `many` takes


class PlanRowSerializer(RowSerializer):
    cluster = RefSerializer()

    class Meta:
        model = Plan
        fields: tuple[str, ...] = (
            "id", "cluster", "title", "component", "object_kind", "object_name", "from_version", "to_version", "state",
            "state_since", "reason", "waiting_for", "author", "last_editor", "created_at", "edited_at", "revision",
            "sealed_at", "content_hash", "is_armed", "armed_since", "put_back_at", "looked_at",
        )  # fmt: skip


class ListedPlanSerializer(PlanRowSerializer):
    pending_stop = serializers.SerializerMethodField(
        help_text="A halt or pause that is in force and that the plan's state does not show yet. Blank: none."
    )

    class Meta(PlanRowSerializer.Meta):
        fields = (*PlanRowSerializer.Meta.fields, "pending_stop")

    def get_pending_stop(self, plan: Plan) -> str:
        return pending_stop_of(plan)


class PauseSerializer(RowSerializer):
    by = serializers.CharField(source="actor")

    class Meta:
        model = Command
        fields = ("by", "at", "reason")


class HoldsSerializer(serializers.Serializer):
    """The held nodes of the driver object."""

    held = serializers.IntegerField(help_text="Carry the label, as last read back.")
    to_hold = serializers.IntegerField(help_text="Whose label is not as we want it yet.")
    foreign = serializers.IntegerField(
        source="foreign_holds", help_text="Held before this plan, which never releases them."
    )


class HoldProgressSerializer(serializers.Serializer):
    """The progress of holding many nodes, or of releases outside of waves."""

    done = serializers.IntegerField()
    total = serializers.IntegerField()
    left_s = serializers.FloatField(allow_null=True, help_text="At the pace of the last minute. Null: nobody knows.")


class ButtonSerializer(serializers.Serializer):
    """A verb, with the reason if the caller cannot use it now."""

    verb = serializers.CharField()
    title = serializers.CharField(source="label")
    is_allowed = serializers.BooleanField()
    why_not = serializers.CharField()
    resource = serializers.CharField(help_text="POST to /plans/{id}/{resource}.")


class StageOnPlanSerializer(StageRowSerializer):
    row = "stage"
    targets_by_state = serializers.DictField(source="counts", child=serializers.IntegerField())
    answers = serializers.SerializerMethodField(help_text="What each gate says now, failing gates first.")
    approvals = ApprovalSerializer(many=True)

    class Meta(StageRowSerializer.Meta):
        fields = (*StageRowSerializer.Meta.fields, "targets_by_state", "answers", "approvals")

    @extend_schema_field(AnswerSerializer(many=True))
    def get_answers(self, stage: Flat) -> list[dict[str, Any]]:
        return list(AnswerSerializer(stage.worst_first, many=True).data)


class HaltingGateSerializer(AnswerSerializer):
    """The gate that halted a plan, with its result at that time."""

    stage = serializers.CharField(source="stage.name")

    class Meta:
        model = GateAnswer
        fields = ("stage", *AnswerSerializer.Meta.fields)


class SuspectPropertySerializer(serializers.Serializer):
    name = serializers.CharField()
    value = serializers.CharField()


class SuspectSerializer(serializers.Serializer):
    """A property, or several that split the nodes alike."""

    properties = SuspectPropertySerializer(many=True)
    failed_with = serializers.IntegerField(help_text="Failed nodes that have it.")
    good_with = serializers.IntegerField(help_text="Good nodes that have it.")
    p = serializers.FloatField(help_text="Fisher's exact test, one-sided.")
    corrected_p = serializers.FloatField(help_text="Corrected by Holm's method over all splits.")
    is_cause = serializers.BooleanField(help_text="The corrected p is at most 0.05.")


class SuspectsSerializer(serializers.Serializer):
    """The properties that failed nodes share and good nodes lack."""

    title = serializers.CharField()
    summary = serializers.CharField()
    failed = serializers.IntegerField(help_text="Failed nodes.")
    good = serializers.IntegerField(help_text="Good nodes.")
    compared = serializers.IntegerField(help_text="Properties whose value is known on every node.")
    unknown = serializers.ListField(child=serializers.CharField(), help_text="Properties that are not compared.")
    suspects = SuspectSerializer(many=True, help_text="The least likely by chance first.")


@dataclass(frozen=True)
class PlanInDetail:
    on_page: PlanOnPage
    buttons: list[Button]
    holding: HoldProgress | None
    releasing: HoldProgress | None
    duration: Duration | None  # None: nothing of it moves, or nobody sees whether it does
    rollback_checks: list[Check]

    @property
    def plan(self) -> Plan:
        return self.on_page.plan

    @property
    def current_stage(self) -> int | None:
        return self.on_page.current.stage.pk if self.on_page.current else None


class PlanSerializer(PlanRowSerializer):
    row = "plan"
    stages = StageOnPlanSerializer(source="on_page.stages", many=True)
    current_stage = serializers.IntegerField(allow_null=True, help_text="Null: none has its turn.")
    pause = PauseSerializer(source="on_page.pause", allow_null=True, help_text="The one in force.")
    why = serializers.CharField(source="on_page.why", help_text="Why it is not moving, as its page says it.")
    besides = serializers.ListField(
        source="on_page.besides", child=serializers.CharField(), help_text="What else holds it back after that."
    )
    halted_by = HaltingGateSerializer(
        source="on_page.halted_by", allow_null=True, help_text="Null: it is not halted, or no gate halted it."
    )
    suspects = SuspectsSerializer(source="on_page.suspects", allow_null=True, help_text="Null: no node failed.")
    overrides = serializers.ListField(
        source="on_page.overrides",
        child=serializers.CharField(),
        help_text="Gates that do not count now, as a person passed them over; a sentence each.",
    )
    holds = HoldsSerializer(source="on_page")
    holding = HoldProgressSerializer(allow_null=True, help_text="Null: it is not at holding its nodes, or is through.")
    releasing = HoldProgressSerializer(
        allow_null=True, help_text="Outside of waves. Null: it is not at letting nodes go, or is through."
    )
    buttons = ButtonSerializer(many=True)
    takes_s = serializers.FloatField(
        source="duration.takes_s",
        default=None,
        allow_null=True,
        help_text="What is left, without people's time. Null: nothing moves, or its cluster is not seen.",
    )
    takes = serializers.CharField(
        source="duration.sentence", default="", help_text="What that is reckoned from; blank: it is null."
    )
    rollback_checks = PreflightCheckSerializer(
        many=True, help_text="What to know before a rollback now; it bars none. Empty in states that lead to none."
    )
    seq = serializers.IntegerField(source="on_page.seq", help_text="Of the newest event this was made from.")

    class Meta(PlanRowSerializer.Meta):
        fields = (
            *PlanRowSerializer.Meta.fields,
            "stages",
            "current_stage",
            "pause",
            "why",
            "besides",
            "halted_by",
            "suspects",
            "overrides",
            "holds",
            "holding",
            "releasing",
            "buttons",
            "takes_s",
            "takes",
            "rollback_checks",
            "seq",
        )


@dataclass(frozen=True)
class DraftInDetail(PlanInDetail):
    preview: Preview | None


class DraftSerializer(PlanSerializer):
    preview = PreviewSerializer(allow_null=True, help_text="Null: the cluster no longer shows the driver object.")

    class Meta(PlanSerializer.Meta):
        fields = (*PlanSerializer.Meta.fields, "preview")


class PlanRequest(Asked):
    driver_object = serializers.IntegerField(min_value=1, max_value=KEY_MOST, help_text="Of /driver-objects.")
    title = serializers.CharField(max_length=200, allow_blank=True, required=False, default="")
    to_version = serializers.CharField(max_length=64, help_text="As 580.126.20.")
    stages = StageDraftSerializer(many=True, help_text="The first must be a canary.", **AT_MOST)


class PlanChange(Asked):
    """A change of a draft; absent fields stay, `stages` replaces all stages."""

    expected_revision = serializers.IntegerField(
        min_value=1, max_value=2**31 - 1, help_text="The `revision` that was read: somebody else's edit is not lost."
    )
    title = serializers.CharField(max_length=200, required=False)
    to_version = serializers.CharField(max_length=64, required=False)
    stages = StageDraftSerializer(many=True, required=False, **AT_MOST)


class PlanEventSerializer(RowSerializer):
    stage = RefSerializer(allow_null=True)
    node = serializers.CharField(source="target.node_name", allow_null=True, default=None)

    class Meta:
        model = PlanEvent
        fields = ("id", "at", "what", "was", "to", "actor", "reason", "stage", "node")
