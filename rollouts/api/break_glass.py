"""Overrides of gates (break-glass): POST creates one, and it stays listed for good."""

from datetime import timedelta

from django.db.models import QuerySet
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from edges.rest import Asked, Listing, RowSerializer
from people.rights import Permission
from people.sign_in.step_up import require_recent_sign_in
from rollouts.api.base import PlanEdge
from rollouts.commands.break_glass import AS_USUAL, LEAST, MOST, acknowledge, override_gate
from rollouts.gates import GATES
from rollouts.models import GateOverride

GATE_KEYS = [(key, gate.title) for key, gate in GATES.items()]


class OverrideRequest(Asked):
    gate = serializers.ChoiceField(choices=GATE_KEYS)
    reason = serializers.CharField(max_length=1000, help_text="The reason, shown and stored permanently.")
    confirm = serializers.CharField(max_length=200, help_text="The title of the plan, typed as a confirmation.")
    valid_for_s = serializers.IntegerField(
        min_value=int(LEAST.total_seconds()),
        max_value=int(MOST.total_seconds()),
        required=False,
        default=int(AS_USUAL.total_seconds()),
        help_text="Seconds until the override ends. The gate counts again then.",
    )


class OverrideSerializer(RowSerializer):
    """A gate that a person has overridden."""

    gate = serializers.ChoiceField(choices=GATE_KEYS)

    class Meta:
        model = GateOverride
        fields = ("id", "gate", "said", "by", "at", "reason", "until", "acknowledged_by", "acknowledged_at")


class StageOverrides(PlanEdge, Listing):
    """Lists the overrides of a stage's gates, the newest first."""

    serializer_class = OverrideSerializer
    queryset = GateOverride.objects.none()

    def get_queryset(self) -> QuerySet[GateOverride]:
        return GateOverride.objects.filter(stage=self.stage(self.kwargs["stage_id"]))

    @extend_schema(request=OverrideRequest, responses={201: OverrideSerializer})
    def post(self, request, stage_id: int) -> Response:
        """Overrides a waiting or failing gate for a while.

        An approval can be overridden by admins of the cluster only.
        """
        stage = self.stage(stage_id)
        asked = self.read(OverrideRequest)
        require_recent_sign_in(request)
        valid_for = timedelta(seconds=asked.pop("valid_for_s"))
        override = override_gate(stage, actor=self.user, valid_for=valid_for, now=timezone.now(), **asked)
        return Response(OverrideSerializer(override).data, status=201)


class Acknowledgements(PlanEdge):
    @extend_schema(request=None, responses={204: None})
    def post(self, request, override_id: int) -> Response:
        """Acknowledges an override. Its author cannot."""
        visible = GateOverride.objects.visible_to(self.user).select_related("stage__plan__cluster")
        override = self.load(visible, override_id)
        self.may(Permission.STOP, override.stage.plan)
        acknowledge(override, actor=self.user, now=timezone.now())
        return Response(status=204)
