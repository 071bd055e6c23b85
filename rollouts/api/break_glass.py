"""Overrides of gates (break-glass): POST creates one, and it stays listed for good."""

from datetime import timedelta

from django.db.models import QuerySet
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from edges.rest import Asked, Listing, RowSerializer
from people.rights import Permission
from rollouts.api.base import PlanEdge
from rollouts.commands.break_glass import AS_USUAL, LEAST, MOST, acknowledge, break_glass
from rollouts.gates import GATES
from rollouts.models import BreakGlass

GATE_KEYS = [(key, gate.title) for key, gate in GATES.items()]


class BreakGlassRequest(Asked):
    gate = serializers.ChoiceField(choices=GATE_KEYS)
    reason = serializers.CharField(max_length=1000, help_text="Why. Kept, and shown for good.")
    confirm = serializers.CharField(max_length=200, help_text="The title of the plan, typed.")
    valid_for_s = serializers.IntegerField(
        min_value=int(LEAST.total_seconds()),
        max_value=int(MOST.total_seconds()),
        required=False,
        default=int(AS_USUAL.total_seconds()),
        help_text="After that the gate counts again.",
    )


class BreakGlassSerializer(RowSerializer):
    """A gate that a person has overridden."""

    gate = serializers.ChoiceField(choices=GATE_KEYS)

    class Meta:
        model = BreakGlass
        fields = ("id", "gate", "said", "by", "at", "reason", "until", "acknowledged_by", "acknowledged_at")


class StageBreakGlass(PlanEdge, Listing):
    """Lists the overrides of a stage's gates, the newest first."""

    serializer_class = BreakGlassSerializer
    queryset = BreakGlass.objects.none()

    def get_queryset(self) -> QuerySet[BreakGlass]:
        return BreakGlass.objects.filter(stage=self.stage(self.kwargs["stage_id"]))

    @extend_schema(request=BreakGlassRequest, responses={201: BreakGlassSerializer})
    def post(self, request, stage_id: int) -> Response:
        """Overrides a waiting or failing gate for a while.

        An approval can be overridden by admins of the cluster only.
        """
        stage = self.stage(stage_id)
        asked = self.read(BreakGlassRequest)
        valid_for = timedelta(seconds=asked.pop("valid_for_s"))
        glass = break_glass(stage, actor=self.user, valid_for=valid_for, now=timezone.now(), **asked)
        return Response(BreakGlassSerializer(glass).data, status=201)


class Acknowledgements(PlanEdge):
    @extend_schema(request=None, responses={204: None})
    def post(self, request, glass_id: int) -> Response:
        """Acknowledges an override. Its author cannot."""
        visible = BreakGlass.objects.visible_to(self.user).select_related("stage__plan__cluster")
        glass = self.load(visible, glass_id)
        self.may(Permission.STOP, glass.stage.plan)
        acknowledge(glass, actor=self.user, now=timezone.now())
        return Response(status=204)
