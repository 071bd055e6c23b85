"""Acts on a finding. An act is a resource: POST creates one, and 204 means that it is recorded."""

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
        max_length=1000, required=False, allow_blank=True, default="", help_text="An optional note, stored permanently."
    )


class AssignmentRequest(NoteRequest):
    to = serializers.CharField(max_length=150, help_text="User name of a person who may see the finding.")


class FeedbackRequest(Asked):
    feedback = serializers.ChoiceField(
        choices=[acts.ACCEPTED, acts.DISMISSED], help_text="Whether the recommended action is right here."
    )
    reason = serializers.CharField(max_length=1000, help_text="The reason, stored permanently.")


class ActEdge(Edge):
    def finding(self, finding_id: int) -> Finding:
        """Returns the finding if the caller may act on it."""
        rows = Finding.objects.visible_to(self.user).select_related("cluster", "node")
        finding = self.load(rows, finding_id)
        require_act(self.user, finding)
        return finding

    @property
    def actor_fields(self) -> dict[str, Any]:
        return {"actor": self.user.get_username(), "key": self.key(), "now": timezone.now()}


class FindingAcknowledgements(ActEdge):
    @extend_schema(request=NoteRequest, responses={204: None}, parameters=[KEY])
    def post(self, request, finding_id: int) -> Response:
        """Acknowledges the finding. An unassigned finding is assigned to the caller."""
        finding = self.finding(finding_id)
        acts.acknowledge(finding, **self.actor_fields, **self.read(NoteRequest))
        return Response(status=204)


class Assignments(ActEdge):
    @extend_schema(request=AssignmentRequest, responses={204: None}, parameters=[KEY])
    def post(self, request, finding_id: int) -> Response:
        """Assigns the finding to a user."""
        finding = self.finding(finding_id)
        acts.assign(finding, **self.actor_fields, **self.read(AssignmentRequest))
        return Response(status=204)


class Unassignments(ActEdge):
    @extend_schema(request=NoteRequest, responses={204: None}, parameters=[KEY])
    def post(self, request, finding_id: int) -> Response:
        """Removes the assignee. The finding is open again."""
        finding = self.finding(finding_id)
        acts.unassign(finding, **self.actor_fields, **self.read(NoteRequest))
        return Response(status=204)


class Feedback(ActEdge):
    @extend_schema(request=FeedbackRequest, responses={204: None}, parameters=[KEY])
    def post(self, request, finding_id: int) -> Response:
        """Accepts or dismisses the recommended action. The action is not carried out."""
        finding = self.finding(finding_id)
        asked = self.read(FeedbackRequest)
        tell = acts.accept if asked.pop("feedback") == acts.ACCEPTED else acts.dismiss
        tell(finding, **self.actor_fields, **asked)
        return Response(status=204)
