from django.db.models import QuerySet
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from edges.rest import Asked, Listing
from people.rights import Permission
from people.sign_in.step_up import require_recent_sign_in
from rollouts.api.base import PlanEdge
from rollouts.api.plan_serializers import PlanRowSerializer
from rollouts.api.serializers import ApprovalSerializer, StageRowSerializer
from rollouts.approvals.decisions import Awaited, awaited, decisions_of_person, waiting_for_approval
from rollouts.commands.plan_approvals import approve, reject
from rollouts.models import Approval, Stage

DECISIONS = {"approve": approve, "reject": reject}


class DecisionRequest(Asked):
    decision = serializers.ChoiceField(choices=list(DECISIONS))
    bundle_hash = serializers.CharField(max_length=64, help_text="The hash of the bundle that was read.")
    reason = serializers.CharField(
        max_length=1000,
        allow_blank=True,
        required=False,
        default="",
        help_text="Required for a rejection, and for a plan that was started despite a blocker. Also required if a "
        "gate has not passed, or has no result from the last minute.",
    )


class ShareSerializer(serializers.Serializer):
    """The approvals that are required from one group, or from anybody."""

    group = serializers.CharField(help_text="Name of the group. Blank: anybody who may approve there.")
    wanted = serializers.IntegerField(help_text="Number of different people who must approve.")
    given = serializers.ListField(child=serializers.CharField(), help_text="Names of the people who have approved.")
    can = serializers.ListField(child=serializers.CharField(), help_text="Names of the people who can still approve.")


class AwaitedSerializer(StageRowSerializer):
    """A stage that waits for an approval, as the caller sees it."""

    row = "stage"
    plan = PlanRowSerializer()  # type: ignore[assignment]
    needed = serializers.IntegerField(help_text="Number of different people who must approve.")
    missing = serializers.IntegerField(help_text="Number of missing approvals. 0: none is missing.")
    given = ApprovalSerializer(many=True, help_text="Decisions in force, including rejections.")
    may_decide = serializers.BooleanField()
    why_not = serializers.CharField(help_text="Why the caller may not decide. Blank: the caller may.")
    counts_not = serializers.CharField(help_text="Why the caller's approval would not count. A rejection counts.")
    shares = ShareSerializer(many=True)

    class Meta(StageRowSerializer.Meta):
        fields = (*StageRowSerializer.Meta.fields, "needed", "missing", "given", "may_decide", "why_not",
                  "counts_not", "shares")  # fmt: skip


class AwaitedList(Listing):
    """Lists stages that wait for an approval, the longest waiting first."""

    serializer_class = AwaitedSerializer
    queryset = Stage.objects.none()

    def get_queryset(self) -> QuerySet[Stage]:
        return waiting_for_approval(Stage.objects.visible_to(self.user))

    def see(self, rows) -> list[Awaited]:
        return awaited(rows, user=self.user)


class GivenSerializer(ApprovalSerializer):
    """A decision of the caller and its subject."""

    stage = serializers.IntegerField(source="stage_id")
    plan = serializers.IntegerField(source="stage.plan_id")
    title = serializers.CharField(source="stage.plan.title", help_text="Title of the plan.")

    class Meta(ApprovalSerializer.Meta):
        fields = (*ApprovalSerializer.Meta.fields, "stage", "plan", "title")


class GivenList(Listing):
    """Lists the caller's decisions, the newest first, with the reason of void ones."""

    serializer_class = GivenSerializer
    queryset = Approval.objects.none()

    def get_queryset(self) -> QuerySet[Approval]:
        return decisions_of_person(self.user)


class StageApprovals(PlanEdge, Listing):
    """Lists the decisions on a stage, void ones included."""

    serializer_class = ApprovalSerializer
    queryset = Approval.objects.none()

    def get_queryset(self) -> QuerySet[Approval]:
        return Approval.objects.filter(stage=self.stage(self.kwargs["stage_id"]))

    @extend_schema(request=DecisionRequest, responses={201: ApprovalSerializer})
    def post(self, request, stage_id: int) -> Response:
        """Approves or rejects exactly what was shown. Nobody can approve their own plan."""
        stage = self.stage(stage_id)
        self.may(Permission.APPROVE, stage.plan)
        asked = self.read(DecisionRequest)
        if asked["decision"] == "approve":
            require_recent_sign_in(request)
        decide = DECISIONS[asked.pop("decision")]
        approval = decide(stage, actor=self.user, now=timezone.now(), **asked)
        return Response(ApprovalSerializer(approval).data, status=201)
