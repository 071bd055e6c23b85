from dataclasses import fields

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from edges.rest import Asked, EvidenceItemSerializer, RowSerializer
from fleet.api.serializers import RefSerializer
from rollouts.commands.draft_problems import LONGEST_REASON as LONGEST_WHY
from rollouts.commands.draft_problems import TIMEOUT_LEAST_S, TIMEOUT_MOST_S
from rollouts.gates import GATES
from rollouts.gates.approval import MOST_GROUPS, MOST_OF_ONE
from rollouts.gates.base import Answer, Gate
from rollouts.gates.options import LONGEST_EXPRESSION, kinds_of, wire_name
from rollouts.gates.shared_waits import SharedWait
from rollouts.lifecycle import TargetState
from rollouts.models import Approval, Cordon, Exclusion, GateAnswer, Stage, StageKind, Target, Wave
from rollouts.models.target import Shown

LONGEST = 366 * 24 * 3600.0  # seconds; no gate waits longer than a year
MOST_NODES = 100_000
KEY_MOST = 2**63 - 1


@extend_schema_field(
    {
        "oneOf": [
            {"type": "number", "minimum": 0, "maximum": LONGEST},
            {"type": "boolean"},
            {"type": "string", "maxLength": LONGEST_EXPRESSION},
            {"type": "object", "additionalProperties": {"type": "integer", "minimum": 1, "maximum": MOST_OF_ONE}},
        ]
    }
)
class Option(serializers.Field):
    """An option with the type in which it was written; gates check the type."""

    def to_internal_value(self, data: object) -> float | int | str | dict:
        if isinstance(data, bool):
            return data
        if isinstance(data, str) and len(data) <= LONGEST_EXPRESSION:
            return data
        if isinstance(data, dict) and len(data) <= MOST_GROUPS:
            return data  # people by group; the gate validates the content
        if not isinstance(data, int | float) or not 0 <= data <= LONGEST:
            kinds = f"a number from 0 to {LONGEST:.0f}, true, false, or text of at most {LONGEST_EXPRESSION} characters"
            raise serializers.ValidationError(f"Must be {kinds}.")
        return data

    def to_representation(self, value: float | str) -> float | int | str:
        return value


class GateOptions(serializers.DictField):
    """Gate → options: {"soak": {"duration_s": 1800}, "workloads_ready": {"advisory": true, "reason": "…"}}."""

    def __init__(self, **kwargs) -> None:
        gates = "; ".join(f"{key} ({', '.join(_own_options(gate))})" for key, gate in GATES.items())
        of_all = (
            "Every gate except the approval has three more options. `advisory`: the result is shown and stored, "
            "but never counts. `reason`: why the gate is advisory; approvers see it. `wait_timeout_s`: how long "
            "the gate may wait before the plan pauses; the default is the value of the stage."
        )
        super().__init__(child=serializers.DictField(child=Option()), help_text=f"{gates}. {of_all}", **kwargs)


def _own_options(gate: type[Gate]) -> list[str]:
    of_all = {field.name for field in fields(Gate)}
    return [wire_name(name, kind) for name, kind in kinds_of(gate).items() if name not in of_all] or ["no options"]


class StageDraftSerializer(Asked):
    """A stage of a draft. Without `gate_options` it gets the default gates of its pool."""

    name = serializers.CharField(max_length=100)
    kind = serializers.ChoiceField(choices=[(kind.value, kind.value) for kind in (StageKind.CANARY, StageKind.POOL)])
    pool = serializers.IntegerField(
        source="pool_id", min_value=1, max_value=KEY_MOST, allow_null=True, required=False, help_text="Id of the pool."
    )
    selector = serializers.CharField(max_length=1000, allow_blank=True, required=False)
    count = serializers.IntegerField(
        min_value=1, max_value=MOST_NODES, allow_null=True, required=False, help_text="Null: all remaining nodes."
    )
    max_unavailable = serializers.IntegerField(min_value=1, max_value=MOST_NODES, required=False)
    timeout_s = serializers.IntegerField(
        min_value=TIMEOUT_LEAST_S,
        max_value=TIMEOUT_MOST_S,
        required=False,
        help_text="Seconds that a gate may wait. After that the plan pauses and asks a person.",
    )
    sick_nodes_reason = serializers.CharField(
        max_length=LONGEST_WHY,
        allow_blank=True,
        required=False,
        help_text="Why the stage includes nodes with open findings of faults. Blank: the stage excludes these nodes.",
    )
    gate_options = GateOptions(required=False)


class AnswerSerializer(RowSerializer):
    """The result of a gate."""

    gate_title = serializers.SerializerMethodField()
    evidence = EvidenceItemSerializer(many=True)
    steps = serializers.ListField(child=serializers.CharField())
    answer = serializers.ChoiceField(choices=[(answer.value, answer.value) for answer in Answer])
    nodes = serializers.ListField(child=serializers.CharField())

    class Meta:
        model = GateAnswer
        fields = (
            "gate",
            "gate_title",
            "answer",
            "title",
            "summary",
            "evidence",
            "steps",
            "nodes",
            "is_advisory",
            "since",
            "at",
            "rested_on_at",
        )

    def get_gate_title(self, answer: GateAnswer) -> str:
        return GATES[answer.gate].title if answer.gate in GATES else answer.gate


class SharedWaitSerializer(serializers.Serializer):
    """A reason for which one or more gates wait."""

    title = serializers.CharField()
    summary = serializers.CharField()
    nodes = serializers.ListField(child=serializers.CharField())
    steps = serializers.ListField(child=serializers.CharField(), help_text="Recommended actions of all of its gates.")
    gates = serializers.SerializerMethodField(help_text="Keys of the gates that wait for this reason.")

    @extend_schema_field(serializers.ListField(child=serializers.CharField()))
    def get_gates(self, wait: SharedWait[GateAnswer]) -> list[str]:
        return [answer.gate for answer in wait.lines]


class ApprovalSerializer(RowSerializer):
    decision = serializers.SerializerMethodField()
    is_standing = serializers.BooleanField(read_only=True)

    class Meta:
        model = Approval
        fields: tuple[str, ...] = (
            "id",
            "decision",
            "by",
            "at",
            "reason",
            "bundle_hash",
            "is_standing",
            "void_at",
            "void_reason",
        )

    @extend_schema_field({"type": "string", "enum": ["approve", "reject"]})
    def get_decision(self, approval: Approval) -> str:
        return "reject" if approval.is_rejection else "approve"


class WaveSerializer(RowSerializer):
    class Meta:
        model = Wave
        fields = ("number", "decided_at", "reason")


class ExclusionSerializer(RowSerializer):
    """The exclusion of a node from an external controller."""

    controller = serializers.CharField()
    mark = serializers.CharField(
        source="external_controller.mark", help_text="The label or annotation that the plan writes."
    )
    was = serializers.CharField(allow_null=True, help_text="Previous value of the label or annotation. Null: absent.")
    is_placed = serializers.SerializerMethodField(
        help_text="True: the cluster shows the mark, and its previous value is not restored yet."
    )

    class Meta:
        model = Exclusion
        fields = (
            "controller",
            "mark",
            "was",
            "wanted_since",
            "is_placed",
            "ended_at",
            "left_reason",
            "trouble",
            "says",
        )

    def get_is_placed(self, row: Exclusion) -> bool:
        return row.placed_at is not None and row.ended_at is None


class CordonSerializer(RowSerializer):
    """A node that its plan cordons until its test Job completes."""

    is_placed = serializers.SerializerMethodField(
        help_text="True: the cluster shows the cordon, and does not show its removal yet."
    )
    removed_at = serializers.DateTimeField(
        allow_null=True, help_text="When another person or program was last seen to remove the cordon. Null: never."
    )

    class Meta:
        model = Cordon
        fields = ("wanted_since", "is_placed", "removed_at", "trouble", "says")

    def get_is_placed(self, row: Cordon) -> bool:
        return row.placed_at is not None


class TargetSerializer(RowSerializer):
    node = serializers.CharField(source="node_name")
    wave = serializers.IntegerField(source="wave.number", allow_null=True, default=None, help_text="Null: no wave yet.")
    state = serializers.ChoiceField(
        choices=[(state, state) for state in sorted({*TargetState, *Shown})],
        source="shown_state",
        help_text=(
            "not-held: the label is not set yet. not-begun: the node was not changed and is no longer held. "
            "back: the node was changed and runs the old version again."
        ),
    )
    facts = serializers.DictField(help_text="Facts about the node at the time when the plan was sealed.")
    baseline_driver_version = serializers.SerializerMethodField(help_text="Null: not released yet.")
    cordon = CordonSerializer(
        allow_null=True, help_text="The plan's cordon of the node. Null: the plan does not cordon the node now."
    )
    exclusions = ExclusionSerializer(
        many=True, help_text="Exclusions in force, and ended exclusions that were not restored to the previous value."
    )

    class Meta:
        model = Target
        fields = (
            "id", "node", "position", "wave", "state", "state_since", "reason", "released_at", "has_escaped", "facts",
            "baseline_driver_version", "cordon", "exclusions",
        )  # fmt: skip

    def get_baseline_driver_version(self, target: Target) -> str | None:
        return (target.baseline or {}).get("driver_version")


class StageRowSerializer(RowSerializer):
    plan = serializers.IntegerField(source="plan_id")
    pool = RefSerializer(allow_null=True)
    gate_options = GateOptions()

    class Meta:
        model = Stage
        fields: tuple[str, ...] = (
            "id", "plan", "index", "name", "kind", "pool", "selector", "count", "max_unavailable", "timeout_s",
            "sick_nodes_reason", "gate_options", "state", "state_since", "reason",
        )  # fmt: skip
