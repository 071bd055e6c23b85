"""Test Jobs of a stage in progress."""

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from edges.rest import Asked
from people.rights import Permission
from rollouts.api.base import PlanEdge
from rollouts.commands.test_jobs import add_test_jobs


class TestJobsRequest(Asked):
    reason = serializers.CharField(max_length=1000, help_text="The reason, stored permanently.")


class StageTestJobs(PlanEdge):
    @extend_schema(request=TestJobsRequest, responses={204: None})
    def post(self, request, stage_id: int) -> Response:
        """Adds a test Job to each changed node of a stage in progress. The gate `test_job` then counts."""
        stage = self.stage(stage_id)
        self.may(Permission.RUN, stage.plan)
        add_test_jobs(stage, actor=self.user, now=timezone.now(), **self.read(TestJobsRequest))
        return Response(status=204)
