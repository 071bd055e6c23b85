"""Test Jobs of a stage in progress."""

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework.response import Response

from people.rights import Permission
from rollouts.api.base import PlanEdge
from rollouts.api.commands import ReasonRequest
from rollouts.commands.test_jobs import add_test_jobs


class StageTestJobs(PlanEdge):
    @extend_schema(request=ReasonRequest, responses={204: None})
    def post(self, request, stage_id: int) -> Response:
        """Adds a test Job to each changed node of a stage in progress. The gate `test_job` then counts."""
        stage = self.stage(stage_id)
        self.may(Permission.RUN, stage.plan)
        add_test_jobs(stage, actor=self.user, now=timezone.now(), **self.read(ReasonRequest))
        return Response(status=204)
