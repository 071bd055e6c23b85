from django.db.models import QuerySet
from rest_framework import serializers

from edges.rest import Listing, RowSerializer
from fleet.api.nodes import OfANode
from operations.test_jobs.test_progress import TestJobOutcome
from rollouts.models import TestJob
from rollouts.queries.test_results import results_of


class TestResultSerializer(RowSerializer):
    """The result of a test Job on a node."""

    plan = serializers.IntegerField(source="plan_id")
    ended_at = serializers.DateTimeField(source="told_at")
    outcome = serializers.CharField(help_text=f"One of {', '.join(TestJobOutcome)}.")
    test = serializers.CharField(help_text="Template of the Job. Blank: an image of its own.")
    numbers = serializers.DictField(
        source="printed", child=serializers.FloatField(), help_text="The numbers that the Job printed, by path."
    )
    gpu_uuids = serializers.ListField(
        child=serializers.CharField(), allow_null=True, help_text="The GPUs that the Job had. Null: unknown."
    )

    class Meta:
        model = TestJob
        fields = (
            "id", "plan", "ended_at", "outcome", "says", "test", "metric", "value", "numbers", "driver_version",
            "gpu_product", "gpu_uuids", "image", "command", "resource", "amount",
        )  # fmt: skip


class NodeTestResults(OfANode, Listing):
    """Lists the results of a node's test Jobs, the newest first."""

    serializer_class = TestResultSerializer
    queryset = TestJob.objects.none()

    def get_queryset(self) -> QuerySet[TestJob]:
        return results_of(self.node(self.kwargs["node_id"]))
