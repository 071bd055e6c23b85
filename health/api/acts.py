"""What is told to a finding. An act is a resource: POST makes one, and 204 says that it is written down."""

from typing import Any

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from edges.rest import KEY, Asked, Edge
from health.inbox import acts
from health.inbox.rights import require_act
from health.models import Finding


class NoteRequest(Asked):
    reason = serializers.CharField(
        max_length=1000, required=False, allow_blank=True, default="", help_text="A note. Kept for good."
    )


class AssignmentRequest(NoteRequest):
    to = serializers.CharField(max_length=150, help_text="The name of somebody who may see it.")


class FeedbackRequest(Asked):
    feedback = serializers.ChoiceField(
        choices=[acts.ACCEPTED, acts.DISMISSED], help_text="Whether the recommended action is right here."
    )
    reason = serializers.CharField(max_length=1000, help_text="Why. Kept for good, and counted for the rule.")


class ActEdge(Edge):
    def finding(self, finding_id: int) -> Finding:
        """As far as the caller may act on it."""
        rows = Finding.objects.visible_to(self.user).select_related("cluster", "node")
        finding = self.load(rows, finding_id)
        require_act(self.user, finding)
        return finding

    @property
    def told(self) -> dict[str, Any]:
        return {"actor": self.user.get_username(), "key": self.key(), "now": timezone.now()}


class FindingAcknowledgements(ActEdge):
    @extend_schema(request=NoteRequest, responses={204: None}, parameters=[KEY])
    def post(self, request, finding_id: int) -> Response:
        """Look after it. Where it is nobody's, it is the caller's."""
        finding = self.finding(finding_id)
        acts.acknowledge(finding, **self.told, **self.read(NoteRequest))
        return Response(status=204)


class Assignments(ActEdge):
    @extend_schema(request=AssignmentRequest, responses={204: None}, parameters=[KEY])
    def post(self, request, finding_id: int) -> Response:
        """Say whose it is."""
        finding = self.finding(finding_id)
        acts.assign(finding, **self.told, **self.read(AssignmentRequest))
        return Response(status=204)


class Unassignments(ActEdge):
    @extend_schema(request=NoteRequest, responses={204: None}, parameters=[KEY])
    def post(self, request, finding_id: int) -> Response:
        """Nobody looks after it any more: it is open again, and nobody's."""
        finding = self.finding(finding_id)
        acts.unassign(finding, **self.told, **self.read(NoteRequest))
        return Response(status=204)


class Feedback(ActEdge):
    @extend_schema(request=FeedbackRequest, responses={204: None}, parameters=[KEY])
    def post(self, request, finding_id: int) -> Response:
        """Accept or dismiss the action that it recommends. Nothing is carried out by this."""
        finding = self.finding(finding_id)
        asked = self.read(FeedbackRequest)
        tell = acts.accept if asked.pop("feedback") == acts.ACCEPTED else acts.dismiss
        tell(finding, **self.told, **asked)
        return Response(status=204)
