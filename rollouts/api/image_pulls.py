"""Image pulls before a change: POST starts one as an operation, GET shows the results."""

from collections.abc import Iterable, Sequence

from django.db.models import QuerySet
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from edges.rest import KEY, Listing
from operations.api.operations import OperationSerializer
from operations.test_jobs.pull_progress import PullOutcome
from people.rights import Permission
from rollouts.api.base import PlanEdge
from rollouts.api.commands import ReasonRequest
from rollouts.commands.image_pulls import MOST_EACH, ask
from rollouts.models import PlanPull
from rollouts.queries.image_pulls import PullOnPage, pulls_on_page


class ImagePullRequest(ReasonRequest):
    nodes_each = serializers.IntegerField(
        min_value=1, max_value=MOST_EACH, required=False, default=1,
        help_text="Number of nodes of each operating system. The first nodes in release order are used.",
    )  # fmt: skip


class PulledNodeSerializer(serializers.Serializer):
    """The image of one node."""

    node = serializers.CharField(source="node_name")
    system = serializers.CharField(help_text="Operating system, from the image's tag.")
    image = serializers.CharField()
    outcome = serializers.CharField(help_text=f"One of {', '.join(PullOutcome)}. Blank: no result yet, or not tried.")
    says = serializers.CharField(help_text="State of the pull, with the words of the registry. No secrets.")
    told_at = serializers.DateTimeField(allow_null=True, help_text="Time of the outcome.")


class PlanPullSerializer(serializers.Serializer):
    """The pull of a plan's image by an operation, which is paused, retried and cancelled as any other."""

    operation = OperationSerializer(source="pull.operation")
    plan = serializers.IntegerField(source="pull.plan_id", help_text="Id of the plan.")
    to_version = serializers.CharField(source="pull.to_version")
    nodes_each = serializers.IntegerField(source="pull.nodes_each")
    left_out = serializers.CharField(source="pull.left_out", help_text="Nodes whose image is unknown.")
    is_proven = serializers.BooleanField(help_text="Every image was pulled on at least one node, and no pull failed.")
    sentence = serializers.CharField()
    nodes = PulledNodeSerializer(many=True)


class ImagePulls(PlanEdge, Listing):
    """Lists the pulls of a plan's image, the newest first."""

    serializer_class = PlanPullSerializer
    queryset = PlanPull.objects.none()

    def get_queryset(self) -> QuerySet[PlanPull]:
        return PlanPull.objects.filter(plan=self.plan(self.kwargs["plan_id"])).select_related("operation__cluster")

    def see(self, rows: Sequence[PlanPull]) -> Iterable[PullOnPage]:
        return pulls_on_page(rows)

    @extend_schema(request=ImagePullRequest, responses={202: PlanPullSerializer}, parameters=[KEY])
    def post(self, request, plan_id: int) -> Response:
        """Pulls the image on the first nodes of each operating system by an operation. Touches no driver and no GPU."""
        plan = self.plan(plan_id)
        self.may(Permission.RUN, plan)
        pull = ask(plan, actor=self.user, key=self.key(), now=timezone.now(), **self.read(ImagePullRequest))
        return Response(PlanPullSerializer(pulls_on_page([pull])[0]).data, status=202)
