from dataclasses import asdict
from typing import Any

import django_filters as filters
from django.db.models import Prefetch, QuerySet
from django.utils import timezone
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.response import Response

from edges.rest import Listing
from people.rights import Permission
from rollouts.api.base import PlanEdge
from rollouts.api.commands import ReasonRequest
from rollouts.api.previews import PreflightCheckSerializer
from rollouts.api.serializers import (
    KEY_MOST,
    AnswerSerializer,
    ApprovalSerializer,
    SharedWaitSerializer,
    StageRowSerializer,
    TargetSerializer,
    WaveSerializer,
)
from rollouts.approvals.shown_bundles import show
from rollouts.commands.test_jobs import add_test_jobs
from rollouts.lifecycle import StageState
from rollouts.models import GateAnswer, Stage, Target
from rollouts.preflight.canary_proof import proof_for
from rollouts.preflight.remaining_nodes import ahead_of
from rollouts.queries.plan_view import cordons_of, exclusions_of, waits_of
from rollouts.queries.remedies import remedies

HISTORY_AT_MOST = 200
STORY = (
    "waves",
    "approvals",
    Prefetch("targets", Target.objects.with_holds().select_related("wave")),
    Prefetch("answers", GateAnswer.objects.filter(is_current=True), to_attr="answers_now"),
    Prefetch(
        "answers",
        GateAnswer.objects.filter(is_current=False).order_by("-at", "-pk")[:HISTORY_AT_MOST],
        "answers_before",
    ),
)


class StageFilters(filters.FilterSet):
    plan = filters.NumberFilter(field_name="plan_id", min_value=1, max_value=KEY_MOST, decimal_places=0)
    state = filters.ChoiceFilter(choices=[(state.value, state.value) for state in StageState])


class WayOutSerializer(serializers.Serializer):
    key = serializers.CharField()
    title = serializers.CharField()
    text = serializers.CharField()
    resource = serializers.CharField(help_text="Address that accepts the action by POST. Blank: nothing is sent.")
    why_not = serializers.CharField(help_text="Why the action is not available now. Blank: it is available.")


class CanaryProofSerializer(serializers.Serializer):
    """The proof that the canary gives about the nodes that are still to change."""

    is_planned = serializers.BooleanField(
        help_text="True: no node has changed, and the numbers describe the planned canary."
    )
    changed = serializers.IntegerField(help_text="Number of nodes with the new driver, including failed nodes.")
    tested = serializers.IntegerField(
        help_text=(
            "Number of changed nodes that were tested: a tenant's GPU pod ran, a test Job passed, or the node failed."
        )
    )
    failed = serializers.IntegerField()
    failure_rate_at_most = serializers.FloatField(help_text="Ratio from 0 to 1, upper 95 % confidence bound.")
    missing = serializers.ListField(
        child=serializers.CharField(), help_text="Kinds of nodes in later stages that no canary node tests."
    )
    sentence = serializers.CharField()


class StageSerializer(StageRowSerializer):
    targets = TargetSerializer(many=True)
    waves = WaveSerializer(many=True)
    answers = AnswerSerializer(source="answers_now", many=True, help_text="Current result of each gate.")
    history = AnswerSerializer(
        source="answers_before",
        many=True,
        help_text=f"Earlier gate results, newest first, at most {HISTORY_AT_MOST}.",
    )
    waits = serializers.SerializerMethodField(help_text="Each reason for which gates wait, once.")
    approvals = ApprovalSerializer(many=True)
    proof = serializers.SerializerMethodField(help_text="The proof by the canary. Null: the stage is a rollback.")
    remedies = serializers.SerializerMethodField(help_text="The actions that end the wait of a gate without evidence.")

    class Meta(StageRowSerializer.Meta):
        fields = (
            *StageRowSerializer.Meta.fields,
            "targets",
            "waves",
            "answers",
            "waits",
            "history",
            "approvals",
            "proof",
            "remedies",
        )

    @extend_schema_field(SharedWaitSerializer(many=True))
    def get_waits(self, stage: Stage) -> list[dict[str, Any]]:
        return list(SharedWaitSerializer(waits_of(stage, stage.answers_now), many=True).data)  # type: ignore[attr-defined]

    @extend_schema_field(CanaryProofSerializer(allow_null=True))
    def get_proof(self, stage: Stage) -> dict[str, Any] | None:
        proof = proof_for(stage)
        return CanaryProofSerializer(proof).data if proof else None

    @extend_schema_field(WayOutSerializer(many=True))
    def get_remedies(self, stage: Stage) -> list[dict[str, str]]:
        return [asdict(way) for answer in stage.answers_now for way in remedies(stage, answer)]  # type: ignore[attr-defined]


class BundleSerializer(serializers.Serializer):
    """The content that an approval binds. Send `hash` with the decision to prove what was shown."""

    hash = serializers.CharField()
    content = serializers.DictField(help_text="The hashed content: plan, stage, targets, answers.")
    evidence = serializers.DictField(help_text="The sentences and numbers of the gate results.")


class ToldAtStart(serializers.Serializer):
    """The result of a check at the start."""

    code = serializers.CharField()
    title = serializers.CharField()
    summary = serializers.CharField()
    is_grave = serializers.BooleanField(default=False)


class SealedRehearsal(serializers.Serializer):
    """The newest rehearsal of the sealed revision with one fault."""

    fault = serializers.CharField(help_text="Key of the fault. Blank: none.")
    seed = serializers.IntegerField()
    by = serializers.CharField(help_text="Who requested it.")
    at = serializers.DateTimeField(help_text="Time of the request.")
    sentence = serializers.CharField(help_text="The outcome in one line.")


class AtStartSerializer(serializers.Serializer):
    """The checks at the start, with their time."""

    at = serializers.DateTimeField(allow_null=True, help_text="Time of the start. Null: not started.")
    warned = ToldAtStart(many=True)
    despite = serializers.DictField(help_text="The overridden blockers, with user and reason. Empty: none.")
    live = serializers.DictField(help_text="Result of the live check, with its time. Empty: no live check.")
    rehearsals = SealedRehearsal(many=True, help_text="Rehearsals of the sealed revision. Empty: none was made.")


class ChecksNowSerializer(serializers.Serializer):
    """The checks of unreleased nodes in this stage and later ones, for approvers."""

    checks = PreflightCheckSerializer(many=True, help_text="The checks, serious ones first.")
    nodes = serializers.IntegerField(help_text="Number of nodes that are not released yet.")
    seen_at = serializers.DateTimeField(help_text="Time at which the rows for these checks were read.")
    stale_reason = serializers.CharField(
        help_text="Why `seen_at` is not the current time. Blank: `seen_at` is the current time."
    )
    at_start = AtStartSerializer()


class StageList(Listing):
    serializer_class = StageRowSerializer
    filterset_class = StageFilters
    queryset = Stage.objects.none()

    def get_queryset(self) -> QuerySet[Stage]:
        return Stage.objects.visible_to(self.user).select_related("pool").order_by("-plan", "index")


class StageDetail(PlanEdge):
    @extend_schema(responses=StageSerializer)
    def get(self, request, stage_id: int) -> Response:
        visible = Stage.objects.visible_to(self.user).select_related("pool", "plan")
        stage = self.load(visible.prefetch_related(*STORY), stage_id)
        exclusions, cordons = exclusions_of(stage.plan), cordons_of(stage.plan)
        for target in stage.targets.all():
            target.cordon = cordons.get(target.node_uid)
            target.exclusions = exclusions.get(target.node_uid, [])
        return Response(StageSerializer(stage).data)


class StageBundle(PlanEdge):
    @extend_schema(responses=BundleSerializer)
    def get(self, request, stage_id: int) -> Response:
        """Returns the content that a decision would cover now.

        A later decision with an outdated hash is refused with the differences.
        """
        return Response(BundleSerializer(show(self.stage(stage_id), now=timezone.now())).data)


class StageChecks(PlanEdge):
    @extend_schema(responses=ChecksNowSerializer)
    def get(self, request, stage_id: int) -> Response:
        """Returns the checks of the start, evaluated again, and their results at the start."""
        stage = self.stage(stage_id)
        plan, sealed = stage.plan, stage.plan.sealed
        empty: dict[str, Any] = {"warned": [], "despite": {}, "live": {}, "rehearsals": []}
        said = {name: sealed.get(name, nothing) for name, nothing in empty.items()}
        ahead = vars(ahead_of(stage, now=timezone.now()))
        return Response(ChecksNowSerializer({**ahead, "at_start": {"at": plan.sealed_at, **said}}).data)


class StageTestJobs(PlanEdge):
    @extend_schema(request=ReasonRequest, responses={204: None})
    def post(self, request, stage_id: int) -> Response:
        """Adds a test Job to each changed node of a stage in progress. The gate `test_job` then counts."""
        stage = self.stage(stage_id)
        self.may(Permission.RUN, stage.plan)
        add_test_jobs(stage, actor=self.user, now=timezone.now(), **self.read(ReasonRequest))
        return Response(status=204)
