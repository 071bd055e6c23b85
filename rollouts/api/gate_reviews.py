"""Gates evaluated again on the record of a plan, and the draft with one more gate."""

import json
from typing import Any

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from edges.rest import Asked
from people.rights import Permission
from rollouts.api.base import PlanEdge
from rollouts.api.plan_serializers import CatchSerializer, DraftSerializer
from rollouts.api.plans import drafted
from rollouts.api.serializers import Option
from rollouts.backtest.review import MOST_PAST, PastTrials, review_plan, try_gate, try_gate_on_past
from rollouts.commands.added_gates import draft_with_gate, usual_options
from rollouts.gates import GATES
from rollouts.gates.options import read_gates
from rollouts.models import Plan

LONGEST_OPTIONS = 4000


class UnknownGateSerializer(serializers.Serializer):
    gate = serializers.CharField(source="gate.key")
    missing = serializers.ListField(child=serializers.CharField(), help_text="Evidence that was not recorded.")


class GateReviewSerializer(serializers.Serializer):
    """Gates that a plan lacked, evaluated on its recorded evidence. A gate without evidence is no pass."""

    until = serializers.DateTimeField(source="end", help_text="Last halt of the plan, else its last move.")
    is_halt = serializers.BooleanField(help_text="Whether the plan halted at `until`.")
    has_releases = serializers.BooleanField(help_text="False: no stage released a node. Nothing can be evaluated.")
    earliest = CatchSerializer(allow_null=True, help_text="The first of `catches`. Null: no gate stops it earlier.")
    catches = CatchSerializer(many=True, help_text="Gates that stop the plan before `until`, the earliest first.")
    passed = serializers.SerializerMethodField(help_text="Keys of gates that would have passed or only waited shortly.")
    unknown = UnknownGateSerializer(many=True, help_text="Gates that cannot be evaluated.")

    def get_passed(self, review) -> list[str]:
        return [past.gate.key for past in review.passed]


class PastTrialSerializer(serializers.Serializer):
    """The gate on the record of an earlier plan."""

    plan = serializers.IntegerField(source="plan.pk")
    until = serializers.DateTimeField(source="end", help_text="Last halt of that plan, else its last move.")
    is_halt = serializers.BooleanField(help_text="Whether that plan halted at `until`.")
    catches = CatchSerializer(many=True, help_text="Stages that the gate would have stopped before `until`.")
    unknown = UnknownGateSerializer(many=True, help_text="The gate, where evidence was not recorded. This is no pass.")


class GateTrialSerializer(GateReviewSerializer):
    past = PastTrialSerializer(many=True, help_text="Newest earlier plans of the cluster, as many as `past` asks for.")
    past_left = serializers.ListField(
        child=serializers.IntegerField(),
        help_text="Earlier plans that were not evaluated: it took too long. This is no pass.",
    )


class GateAdditionRequest(Asked):
    gate = serializers.ChoiceField(choices=[(key, gate.title) for key, gate in GATES.items()])
    options = serializers.DictField(
        child=Option(), required=False, help_text="As in `gate_options` of a stage. Absent: the default options."
    )


class GateTrialAsked(Asked):
    gate = serializers.ChoiceField(
        choices=[(key, gate.title) for key, gate in GATES.items()], required=False,
        help_text="Evaluates this gate alone, on every stage. Absent: each gate that a stage did not count.",
    )  # fmt: skip
    options = serializers.CharField(
        required=False, max_length=LONGEST_OPTIONS,
        help_text='Options of `gate` as JSON, such as {"timeout_s": 600}. Absent: the default options.',
    )  # fmt: skip

    past = serializers.IntegerField(
        required=False, default=0, min_value=0, max_value=MOST_PAST,
        help_text="So many earlier plans of the cluster are evaluated with `gate`, too.",
    )  # fmt: skip

    def validate_options(self, text: str) -> dict[str, Any]:
        try:
            read = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise serializers.ValidationError("Must be a JSON object.") from error
        if not isinstance(read, dict):
            raise serializers.ValidationError("Must be a JSON object.")
        return read


class GateReview(PlanEdge):
    @extend_schema(parameters=[GateTrialAsked], responses=GateTrialSerializer)
    def get(self, request, plan_id: int) -> Response:
        """Returns which gate would have stopped the plan earlier, or what one gate with other options would have done.

        Changes nothing.
        """
        plan = self.plan(plan_id)
        asked = GateTrialAsked(data=request.query_params.dict())
        asked.is_valid(raise_exception=True)
        if not (key := asked.validated_data.get("gate")):
            return Response(GateReviewSerializer(review_plan(plan, usual_options)).data | {"past": [], "past_left": []})
        (gate,) = read_gates({key: asked.validated_data.get("options", usual_options(key))})
        visible, most = Plan.objects.visible_to(self.user), asked.validated_data["past"]
        past = try_gate_on_past(visible, plan, gate, most=most) if most else PastTrials((), ())
        return Response(
            GateReviewSerializer(try_gate(plan, gate)).data
            | {
                "past": PastTrialSerializer(past.reviews, many=True).data,
                "past_left": [one.pk for one in past.left],
            }
        )


class GateAdditions(PlanEdge):
    @extend_schema(request=GateAdditionRequest, responses={201: DraftSerializer})
    def post(self, request, plan_id: int) -> Response:
        """Creates a draft of the same change with one more gate in every stage."""
        plan = self.plan(plan_id)
        self.may(Permission.DRAFT, plan)
        asked = self.read(GateAdditionRequest)
        options = asked.get("options", usual_options(asked["gate"]))
        made = draft_with_gate(plan, gate=asked["gate"], options=options, actor=self.user, now=timezone.now())
        return Response(drafted(made, self.user), status=201)
