"""Image pulls before a change: POST requests one, a worker creates its Jobs, GET shows the progress."""

from collections.abc import Iterable, Sequence

from django.db.models import QuerySet
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from edges.rest import KEY, Asked, Listing, RowSerializer
from operations.test_jobs.pull_progress import PullOutcome
from people.rights import Permission
from rollouts.api.base import PlanEdge
from rollouts.api.commands import ReasonRequest
from rollouts.commands.image_pulls import MOST_EACH, ask, cancel
from rollouts.commands.test_jobs import add_test_jobs
from rollouts.image_pulls.latest_pulls import PullOnPage, pull_on_page, pulls_on_page
from rollouts.models import ImagePull, PullJob


class ImagePullRequest(ReasonRequest):
    nodes_each = serializers.IntegerField(
        min_value=1, max_value=MOST_EACH, required=False, default=1,
        help_text="Number of nodes of each operating system. The first nodes in release order are used.",
    )  # fmt: skip


class PullJobSerializer(RowSerializer):
    """One image on one node."""

    node = serializers.CharField(source="node_name")
    outcome = serializers.CharField(help_text=f"One of {', '.join(PullOutcome)}. Blank: no result yet.")
    says = serializers.CharField(help_text="State of the pull as a sentence.")
    said = serializers.CharField(help_text="Message of the component that refused, such as the registry. No secrets.")
    took_s = serializers.SerializerMethodField(help_text="Seconds from the pod's start to the container's start.")

    class Meta:
        model = PullJob
        fields = ("node", "system", "image", "namespace", "job_name", "outcome", "says", "said", "took_s",
                  "intended_at", "made_at", "told_at", "gone_at", "trouble")  # fmt: skip

    def get_took_s(self, job: PullJob) -> float | None:
        return None if job.took is None else job.took.total_seconds()


class ImagePullSerializer(serializers.Serializer):
    """An image pull."""

    id = serializers.IntegerField(source="pull.pk")
    plan = serializers.IntegerField(source="pull.plan_id", help_text="Id of the plan.")
    to_version = serializers.CharField(source="pull.to_version")
    nodes_each = serializers.IntegerField(source="pull.nodes_each")
    asked_by = serializers.CharField(source="pull.asked_by")
    asked_at = serializers.DateTimeField(source="pull.asked_at")
    reason = serializers.CharField(source="pull.reason")
    left_out = serializers.CharField(source="pull.left_out", help_text="Nodes whose image is unknown.")
    ends_reason = serializers.CharField(source="pull.ends_reason", help_text="Why no more Jobs are created.")
    waiting_for = serializers.CharField(source="pull.waiting_for", help_text="Why the pull waits. Blank: no wait.")
    ended_at = serializers.DateTimeField(
        source="pull.ended_at", allow_null=True, help_text="When the last Job was read back as deleted."
    )
    is_proven = serializers.BooleanField(help_text="Every image was pulled on at least one node, and no pull failed.")
    sentence = serializers.CharField()
    jobs = PullJobSerializer(many=True)


class ImagePulls(PlanEdge, Listing):
    """Lists the pulls of a plan's image, the newest first."""

    serializer_class = ImagePullSerializer
    queryset = ImagePull.objects.none()

    def get_queryset(self) -> QuerySet[ImagePull]:
        return ImagePull.objects.filter(plan=self.plan(self.kwargs["plan_id"]))

    def see(self, rows: Sequence[ImagePull]) -> Iterable[PullOnPage]:
        return pulls_on_page(rows)

    @extend_schema(request=ImagePullRequest, responses={201: ImagePullSerializer}, parameters=[KEY])
    def post(self, request, plan_id: int) -> Response:
        """Pulls the image on the first nodes of each operating system, one Job each. Touches no driver and no GPU."""
        plan = self.plan(plan_id)
        self.may(Permission.RUN, plan)
        pull = ask(plan, actor=self.user, key=self.key(), now=timezone.now(), **self.read(ImagePullRequest))
        return Response(ImagePullSerializer(pull_on_page(pull)).data, status=201)


class ImagePullDetail(PlanEdge):
    @extend_schema(responses=ImagePullSerializer)
    def get(self, request, pull_id: int) -> Response:
        return Response(ImagePullSerializer(pull_on_page(self.pull(pull_id))).data)

    def pull(self, pull_id: int) -> ImagePull:
        return self.load(ImagePull.objects.visible_to(self.user).select_related("plan__cluster"), pull_id)


class ImagePullCancellations(ImagePullDetail):
    http_method_names = ["post", "options"]

    @extend_schema(request=ReasonRequest, responses={204: None})
    def post(self, request, pull_id: int) -> Response:
        """Cancels the pull and deletes its Jobs. Results stay."""
        pull = self.pull(pull_id)
        self.may(Permission.STOP, pull.plan)
        cancel(pull, actor=self.user, now=timezone.now(), **self.read(ReasonRequest))
        return Response(status=204)


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
