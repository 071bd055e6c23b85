"""Rehearsals of a draft in virtual time: POST requests one, a worker plays it, GET lists the outcomes."""

from django.db.models import QuerySet
from django.utils import timezone
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.response import Response

from edges.rest import Asked, Listing, RowSerializer
from people.rights import Permission
from rollouts.api.base import PlanEdge
from rollouts.commands.rehearsals import ask
from rollouts.models import Rehearsal
from rollouts.rehearsal.faults import FAULTS, MOST_SEED

TITLES = [(fault.key, fault.title) for fault in FAULTS.values()]


class RehearsalRequest(Asked):
    fault = serializers.ChoiceField(
        choices=TITLES, required=False, default="", allow_blank=True,
        help_text="Fault of the new driver. Blank: it has none.",
    )  # fmt: skip
    seed = serializers.IntegerField(
        min_value=0, max_value=MOST_SEED, required=False, default=1,
        help_text="Chooses the nodes with the fault. The same seed gives the same rehearsal.",
    )  # fmt: skip


class OutcomeRow(serializers.Serializer):
    label = serializers.CharField()  # type: ignore[assignment]
    value = serializers.CharField()


class OutcomeSerializer(serializers.Serializer):
    """The outcome of a rehearsal. Numbers of nodes, and seconds of virtual time."""

    is_complete = serializers.BooleanField(help_text="Every stage passed.")
    stage = serializers.CharField(help_text="Name of the stage that stopped. Blank: none.")
    gate = serializers.CharField(help_text="Key of the gate that stopped it. Blank: none.")
    took_s = serializers.FloatField(help_text="Seconds of virtual time, with every approval given at once.")
    nodes = serializers.IntegerField(help_text="Nodes of the plan.")
    affected = serializers.IntegerField(help_text="Nodes with the fault.")
    released = serializers.IntegerField(help_text="Nodes that were released.")
    harmed = serializers.IntegerField(help_text="Released nodes that showed a sign of the fault.")
    released_without_sign = serializers.IntegerField(help_text="Released nodes with the fault that showed no sign.")
    not_released = serializers.IntegerField(help_text="Nodes with the fault that were never released.")
    released_after_sign = serializers.IntegerField(help_text="Nodes that were released after the first sign.")
    rows = OutcomeRow(many=True, help_text="The outcome as text for people.")
    sentence = serializers.CharField(help_text="The outcome in one line.")


class RehearsalSerializer(RowSerializer):
    """A rehearsal of one revision of a draft."""

    fault = serializers.CharField(help_text="Key of the fault. Blank: none.")
    trouble = serializers.CharField(help_text="Why there is no outcome. Blank: there is one, or it is not finished.")
    outcome = serializers.SerializerMethodField()

    class Meta:
        model = Rehearsal
        fields = ("id", "plan", "revision", "fault", "seed", "asked_by", "asked_at", "finished_at", "outcome",
                  "trouble")  # fmt: skip

    @staticmethod
    @extend_schema_field(OutcomeSerializer(allow_null=True))
    def get_outcome(row: Rehearsal) -> dict | None:
        return row.outcome or None


class Rehearsals(PlanEdge, Listing):
    """Lists the rehearsals of a plan, the newest first."""

    serializer_class = RehearsalSerializer
    queryset = Rehearsal.objects.none()

    def get_queryset(self) -> QuerySet[Rehearsal]:
        return Rehearsal.objects.filter(plan=self.plan(self.kwargs["plan_id"]))

    @extend_schema(request=RehearsalRequest, responses={202: RehearsalSerializer})
    def post(self, request, plan_id: int) -> Response:
        """Requests a rehearsal of a draft. A worker plays it in virtual time. The cluster is not changed."""
        plan = self.plan(plan_id)
        self.may(Permission.DRAFT, plan)
        row = ask(plan, actor=self.user, now=timezone.now(), **self.read(RehearsalRequest))
        return Response(RehearsalSerializer(row).data, status=202)
