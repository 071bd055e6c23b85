from dataclasses import dataclass
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from edges.rest import Asked, Flat, ReportSerializer, RowSerializer
from fleet.api.serializers import RefSerializer
from health.api.suspects import SuspectsSerializer
from rollouts.api.previews import PreflightCheckSerializer, PreviewSerializer
from rollouts.api.serializers import (
    KEY_MOST,
    AnswerSerializer,
    ApprovalSerializer,
    SharedWaitSerializer,
    StageDraftSerializer,
    StageRowSerializer,
)
from rollouts.backtest.review import Catch
from rollouts.checks import Check
from rollouts.commands.duration import Duration
from rollouts.commands.hold_progress import HoldProgress
from rollouts.commands.preview import Preview
from rollouts.commands.rollback_preview import RollbackPreview
from rollouts.models import Command, GateAnswer, Plan, PlanEvent
from rollouts.queries.plan_view import Button, PlanOnPage

AT_MOST: dict[str, Any] = {"max_length": 50}  # stages; the stubs do not know what `many` takes


class PlanRowSerializer(RowSerializer):
    cluster = RefSerializer()

    class Meta:
        model = Plan
        fields: tuple[str, ...] = (
            "id", "cluster", "title", "component", "object_kind", "object_name", "from_version", "to_version", "state",
            "state_since", "reason", "waiting_for", "author", "last_editor", "created_at", "edited_at", "revision",
            "cordon_affected", "sealed_at", "content_hash", "is_armed", "armed_since", "put_back_at", "looked_at",
        )  # fmt: skip


class ListedPlanSerializer(PlanRowSerializer):
    row = "plan"
    why = serializers.CharField(help_text="Why the plan does not move, as in the list of plans.")
    pending_stop = serializers.CharField(
        help_text="A halt or pause that is in force and that the plan's state does not show yet. Blank: none."
    )

    class Meta(PlanRowSerializer.Meta):
        fields = (*PlanRowSerializer.Meta.fields, "why", "pending_stop")


class PauseSerializer(RowSerializer):
    by = serializers.CharField(source="actor")

    class Meta:
        model = Command
        fields = ("by", "at", "reason")


class HoldsSerializer(serializers.Serializer):
    """The held nodes of the driver object."""

    held = serializers.IntegerField(help_text="Number of nodes with the plan's label at the last read.")
    to_hold = serializers.IntegerField(help_text="Number of nodes whose label still has to be added or removed.")
    foreign = serializers.IntegerField(
        source="foreign_holds",
        help_text="Nodes that somebody else held before the plan began. The plan never releases them.",
    )


class HoldProgressSerializer(serializers.Serializer):
    """The progress of holding many nodes, or of releases outside of waves."""

    done = serializers.IntegerField()
    total = serializers.IntegerField()
    left_s = serializers.FloatField(allow_null=True, help_text="Remaining seconds at the current pace. Null: unknown.")


class ButtonSerializer(serializers.Serializer):
    """A verb, with the reason if the caller cannot use it now."""

    verb = serializers.CharField()
    title = serializers.CharField(source="label")
    is_allowed = serializers.BooleanField()
    why_not = serializers.CharField()
    resource = serializers.CharField(help_text="Send a POST to /plans/{id}/{resource}.")
    says = serializers.CharField(help_text="Effect of the command now. Blank: the title describes it.")
    seen = serializers.CharField(help_text="Hash of that, for the verbs that compare it. Blank: nothing to compare.")


class StageOnPlanSerializer(StageRowSerializer):
    row = "stage"
    targets_by_state = serializers.DictField(source="counts", child=serializers.IntegerField())
    answers = serializers.SerializerMethodField(help_text="Current result of each gate, failing gates first.")
    waits = SharedWaitSerializer(many=True, help_text="Each reason for which gates wait, once.")
    approvals = ApprovalSerializer(many=True)

    class Meta(StageRowSerializer.Meta):
        fields = (*StageRowSerializer.Meta.fields, "targets_by_state", "answers", "waits", "approvals")

    @extend_schema_field(AnswerSerializer(many=True))
    def get_answers(self, stage: Flat) -> list[dict[str, Any]]:
        return list(AnswerSerializer(stage.worst_first, many=True).data)


class HaltingGateSerializer(AnswerSerializer):
    """The gate that halted a plan, with its result at that time."""

    stage = serializers.CharField(source="stage.name")

    class Meta:
        model = GateAnswer
        fields = ("stage", *AnswerSerializer.Meta.fields)


class CatchSerializer(serializers.Serializer):
    """The first moment at which a gate would have stopped a stage, on recorded evidence."""

    gate = serializers.CharField(source="gate.key")
    gate_title = serializers.CharField(source="gate.title")
    stage = RefSerializer()
    at = serializers.DateTimeField()
    answer = serializers.SerializerMethodField(
        help_text="fail: the gate halts the plan. wait: it waits when the stage passed, until a person is asked."
    )
    report = ReportSerializer()
    nodes = serializers.ListField(child=serializers.CharField(), help_text="Nodes that the result names.")
    good_nodes = serializers.ListField(
        child=serializers.CharField(), help_text="Those of `nodes` that had not failed by the end of the record."
    )
    released_after = serializers.IntegerField(source="spared", help_text="Nodes that were released after `at`.")

    @extend_schema_field({"type": "string", "enum": ["fail", "wait"]})
    def get_answer(self, catch: Catch) -> str:
        return "wait" if catch.is_wait else "fail"


class RollbackPreviewSerializer(serializers.Serializer[RollbackPreview]):
    nodes = serializers.ListField(child=serializers.CharField(), help_text="Names of the nodes that change back.")
    waves = serializers.IntegerField()
    at_once = serializers.IntegerField(help_text="Most nodes that change back at once.")
    gpu_pods = serializers.IntegerField(allow_null=True, help_text="Pods of tenants on them. Null: pods are not seen.")
    takes_s = serializers.FloatField(help_text="Expected seconds without waits for people.")
    sentence = serializers.CharField()


@dataclass(frozen=True)
class PlanInDetail:
    on_page: PlanOnPage
    buttons: list[Button]
    holding: HoldProgress | None
    releasing: HoldProgress | None
    duration: Duration | None  # None: nothing of it moves, or nobody sees whether it does
    rollback_checks: list[Check]
    rollback_preview: RollbackPreview | None  # None: in this state nothing can be rolled back
    missed_gate: Catch | None  # None: the plan is not halted, or no gate stops it earlier

    @property
    def plan(self) -> Plan:
        return self.on_page.plan

    @property
    def current_stage(self) -> int | None:
        return self.on_page.current.stage.pk if self.on_page.current else None


class PlanSerializer(PlanRowSerializer):
    row = "plan"
    stages = StageOnPlanSerializer(source="on_page.stages", many=True)
    current_stage = serializers.IntegerField(allow_null=True, help_text="Id of the stage in progress. Null: none.")
    pause = PauseSerializer(source="on_page.pause", allow_null=True, help_text="The pause in force. Null: not paused.")
    why = serializers.CharField(source="on_page.why", help_text="Why the plan does not move, as on its page.")
    besides = serializers.ListField(
        source="on_page.besides", child=serializers.CharField(), help_text="Further reasons beside `why`."
    )
    halted_by = HaltingGateSerializer(
        source="on_page.halted_by", allow_null=True, help_text="Null: the plan is not halted, or no gate halted it."
    )
    suspects = SuspectsSerializer(source="on_page.suspects", allow_null=True, help_text="Null: no node failed.")
    missed_gate = CatchSerializer(
        allow_null=True,
        help_text="The gate that would have stopped a halted plan earlier. Null: not halted, or no gate would have.",
    )
    overrides = serializers.ListField(
        source="on_page.overrides",
        child=serializers.CharField(),
        help_text="Overridden gates, which do not count now. One sentence for each gate.",
    )
    holds = HoldsSerializer(source="on_page")
    holding = HoldProgressSerializer(allow_null=True, help_text="Progress of holding nodes. Null: not in progress.")
    releasing = HoldProgressSerializer(
        allow_null=True, help_text="Progress of releases outside of waves. Null: not in progress."
    )
    buttons = ButtonSerializer(many=True)
    takes_s = serializers.FloatField(
        source="duration.takes_s",
        default=None,
        allow_null=True,
        help_text=(
            "Expected seconds without waits for people. Null: the plan does not move, or the cluster is not live."
        ),
    )
    takes = serializers.CharField(
        source="duration.sentence", default="", help_text="How `takes_s` was calculated. Blank: `takes_s` is null."
    )
    rollback_checks = PreflightCheckSerializer(
        many=True,
        help_text="Warnings before a rollback now. They do not prevent it. Empty in states without a rollback.",
    )
    rollback_preview = RollbackPreviewSerializer(
        allow_null=True, help_text="What a rollback would do now. Null in states without a rollback."
    )
    seq = serializers.IntegerField(source="on_page.seq", help_text="Id of the newest event before this answer.")

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
            "missed_gate",
            "overrides",
            "holds",
            "holding",
            "releasing",
            "buttons",
            "takes_s",
            "takes",
            "rollback_checks",
            "rollback_preview",
            "seq",
        )


@dataclass(frozen=True)
class DraftInDetail(PlanInDetail):
    preview: Preview | None


class DraftSerializer(PlanSerializer):
    preview = PreviewSerializer(allow_null=True, help_text="Null: the cluster no longer has the driver object.")

    class Meta(PlanSerializer.Meta):
        fields = (*PlanSerializer.Meta.fields, "preview")


class PlanRequest(Asked):
    driver_object = serializers.IntegerField(min_value=1, max_value=KEY_MOST, help_text="Id in /driver-objects.")
    title = serializers.CharField(max_length=200, allow_blank=True, required=False, default="")
    to_version = serializers.CharField(max_length=64, help_text="Target version, such as 580.126.20.")
    stages = StageDraftSerializer(many=True, help_text="Stages in order. The first must be a canary.", **AT_MOST)
    cordon_affected = serializers.BooleanField(
        required=False, default=False, help_text="Cordon affected nodes when a gate halts the plan."
    )


class PlanChange(Asked):
    """A change of a draft; absent fields stay, `stages` replaces all stages."""

    expected_revision = serializers.IntegerField(
        min_value=1, max_value=2**31 - 1, help_text="The `revision` that was read. Protects the changes of other users."
    )
    title = serializers.CharField(max_length=200, required=False)
    to_version = serializers.CharField(max_length=64, required=False)
    stages = StageDraftSerializer(many=True, required=False, **AT_MOST)
    cordon_affected = serializers.BooleanField(required=False)


class PlanEventSerializer(RowSerializer):
    stage = RefSerializer(allow_null=True)
    node = serializers.CharField(source="target.node_name", allow_null=True, default=None)

    class Meta:
        model = PlanEvent
        fields = ("id", "at", "what", "was", "to", "actor", "reason", "stage", "node")
