"""One pod with its whole story, as on its page."""

from django.utils import timezone
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.response import Response

from capacity.pods.image_pulls import PendingPull
from capacity.pods.story import NearNode, story_of, waiting_story
from capacity.wait_reasons.answers import Actor, Change, DecidingKind, ScalingVerdict
from edges.rest import Edge, RowSerializer
from fleet.api.pods import PodRowSerializer
from fleet.freshness.cluster import load_cluster_freshness
from fleet.models import ClusterEvent, Pod


class PodConditionSerializer(serializers.Serializer):
    type = serializers.CharField()
    status = serializers.CharField(help_text="True, False or Unknown.")
    reason = serializers.CharField(default="")
    message = serializers.CharField(default="")
    at = serializers.DateTimeField(default=None, allow_null=True, help_text="Time of the last transition.")


class PodEventSerializer(RowSerializer):
    class Meta:
        model = ClusterEvent
        fields = (
            "about_kind",
            "about_name",
            "is_warning",
            "reason",
            "message",
            "source",
            "count",
            "first_at",
            "last_at",
        )


class HeldGpuSerializer(serializers.Serializer):
    index = serializers.IntegerField(allow_null=True, help_text="Null: only the UUID is known.")
    uuid = serializers.CharField()
    product = serializers.CharField()
    resource = serializers.CharField(source="allocation.resource")
    profile = serializers.CharField(
        source="allocation.profile", help_text="Profile of the pod's slice, such as 1g.10gb. Blank: the whole GPU."
    )
    claim = serializers.CharField(source="allocation.claim")
    reported_by = serializers.CharField(source="allocation.source.value")
    is_current = serializers.BooleanField(source="allocation.is_current")


class PodClaimSerializer(serializers.Serializer):
    name = serializers.CharField()
    is_allocated = serializers.SerializerMethodField()
    requests = serializers.JSONField()
    allocated = serializers.JSONField()

    def get_is_allocated(self, claim) -> bool:
        return bool(claim.allocated)


class PendingPullSerializer(serializers.Serializer):
    image = serializers.CharField()
    since = serializers.DateTimeField()
    size_bytes = serializers.IntegerField(allow_null=True, help_text="Null: no earlier pull of it is known.")
    typical_s = serializers.SerializerMethodField(
        help_text="Median of other pulls in the cluster. Null: none is known."
    )
    other_pulls = serializers.SerializerMethodField(help_text="Pulls of the image in the last hour.")
    other_images = serializers.IntegerField(source="others", help_text="Other images that the node pulls, too.")

    def get_typical_s(self, pull: PendingPull) -> float | None:
        return pull.typical.total_seconds() if pull.typical else None

    def get_other_pulls(self, pull: PendingPull) -> int:
        return len(pull.took)


class PodStorySerializer(serializers.Serializer):
    pod = PodRowSerializer(source="row")
    owner = serializers.CharField(source="line.owner", help_text="Topmost watched owner, such as `Deployment chat`.")
    pools = serializers.ListField(
        source="line.pools", child=serializers.CharField(), help_text="Pools of the pod's node."
    )
    gpus_held = HeldGpuSerializer(source="gpus", many=True)
    resource_claims = PodClaimSerializer(source="claims", many=True)
    missing_claims = serializers.ListField(child=serializers.CharField())
    conditions = PodConditionSerializer(many=True, help_text="Conditions of the pod. Empty once the pod has a node.")
    image_pull = PendingPullSerializer(allow_null=True, help_text="Null: it waits for no image.")
    placement = serializers.JSONField(
        source="pod.placement", help_text="Scheduling requirements of the pod. Empty once the pod has a node."
    )
    events = PodEventSerializer(many=True, help_text="Kubernetes Events of the pod and its direct owner, newest first.")


class PendingChangeSerializer(serializers.Serializer):
    text = serializers.CharField()
    actor = serializers.ChoiceField(
        choices=[(actor.value, actor.value) for actor in Actor], help_text="Who can make the change."
    )
    fits_now = serializers.SerializerMethodField(
        help_text="Nodes on which the pod fits immediately after the change. Null: unknown."
    )
    fits_later = serializers.SerializerMethodField(
        help_text="Nodes on which the pod fits after the change once other pods end. Null: unknown."
    )

    def get_fits_now(self, change: Change) -> int | None:
        return change.fits_now if change.fits_later else None

    def get_fits_later(self, change: Change) -> int | None:
        return change.fits_later or None


class FunnelStepSerializer(serializers.Serializer):
    title = serializers.CharField()
    left = serializers.IntegerField(help_text="Nodes that remain after this step.")
    removed = serializers.IntegerField()


class NearNodeSerializer(serializers.Serializer):
    node = serializers.IntegerField(source="miss.node.key", help_text="ID of the node.")
    name = serializers.CharField(source="miss.node.name")
    lacks = serializers.ListField(source="miss.lacks", child=serializers.CharField())
    holders = serializers.SerializerMethodField(help_text="Pods that hold GPUs of the node, the largest first.")

    @extend_schema_field(serializers.ListField(child=serializers.CharField()))
    def get_holders(self, near: NearNode) -> list[str]:
        return [f"{holder.pod}: {holder.gpus}" for holder in near.holders]


class QueueQuotaSerializer(serializers.Serializer):
    flavor = serializers.CharField()
    resource = serializers.CharField()
    nominal = serializers.IntegerField()
    reserved = serializers.IntegerField()
    borrowed = serializers.IntegerField(help_text="Part of `reserved` that is borrowed from the cohort.")


class QueuePlaceSerializer(serializers.Serializer):
    system = serializers.CharField(help_text="Kueue, Volcano or KAI.")
    workload = serializers.CharField(help_text="Namespace and name of the Workload or PodGroup.")
    queue = serializers.CharField(help_text="LocalQueue of Kueue, else the queue of the PodGroup.")
    cluster_queue = serializers.CharField(help_text="Empty: unknown, or not Kueue.")
    is_active = serializers.BooleanField()
    is_waiting = serializers.BooleanField(help_text="False: it is admitted.")
    is_reserved = serializers.BooleanField(help_text="Quota is reserved, but admission checks are not ready.")
    position = serializers.IntegerField(allow_null=True, help_text="1 is the next, by priority and age. Null: unknown.")
    length = serializers.IntegerField(help_text="Waiting workloads of the ClusterQueue.")
    head = serializers.CharField(help_text="The first workload of a StrictFIFO queue. Empty: not strict, or this one.")
    reason = serializers.CharField()
    message = serializers.CharField(help_text="The queue's own words.")
    trouble = serializers.CharField(help_text="Why the queue admits nothing. Empty: it admits workloads.")
    quotas = QueueQuotaSerializer(many=True)


class ScalingReportSerializer(serializers.Serializer):
    autoscaler = serializers.CharField(help_text="Cluster autoscaler or Karpenter.")
    verdict = serializers.ChoiceField(
        [each.value for each in ScalingVerdict], help_text="Outcome of the request, or why it adds no node."
    )
    is_adding = serializers.BooleanField(help_text="It has asked for a node for this pod.")
    summary = serializers.CharField()
    details = serializers.ListField(
        child=serializers.CharField(), help_text="From its NodePools, NodeClaims or status, at most 8."
    )
    message = serializers.CharField(help_text="Its own words. Blank: it has written no Event about the pod.")
    at = serializers.DateTimeField(allow_null=True, help_text="Time of its last report. Null: the Event has no time.")


class VictimSerializer(serializers.Serializer):
    pod = serializers.CharField(help_text="Namespace and name.")
    priority = serializers.IntegerField()
    budget = serializers.CharField(help_text="PodDisruptionBudget that allows no eviction now. Empty: none.")


class PreemptionSerializer(serializers.Serializer):
    text = serializers.CharField()
    nodes = serializers.IntegerField(help_text="Nodes on which preemption would make room.")
    node = serializers.CharField(source="best.name", default="", help_text="The one where it ends the fewest pods.")


class HigherPrioritySerializer(serializers.Serializer):
    name = serializers.CharField(help_text="Of the PriorityClass.")
    value = serializers.IntegerField()
    nodes = serializers.IntegerField(help_text="Nodes on which preemption would then make room.")
    node = serializers.CharField(source="best.name", help_text="The one where it ends the fewest pods.")
    victims = VictimSerializer(many=True, help_text="Pods that it would end there.")


class DecidingObjectSerializer(serializers.Serializer):
    kind = serializers.ChoiceField([kind.value for kind in DecidingKind])
    name = serializers.CharField(help_text="Several names, or a pod as namespace/name, in one text.")
    page = serializers.CharField(help_text="Path of the page that shows it. Blank: no page does.")


class WhyPendingSerializer(serializers.Serializer):
    """The reason why a pod waits for a node, recomputed from the rows of its cluster."""

    key = serializers.CharField(
        source="found.key", help_text="Identifier of the reason, such as no_room, fragmented or matches_no_node."
    )
    title = serializers.CharField(source="found.title")
    summary = serializers.CharField(source="found.summary")
    decided_by = serializers.CharField(
        source="found.decided_by", help_text="The label, taint, resource, gate, claim or node that decides."
    )
    deciding_object = DecidingObjectSerializer(
        source="deciding", allow_null=True, help_text="The same with its kind and page. Null: nothing decides."
    )
    changes = PendingChangeSerializer(
        source="found.changes", many=True, help_text="Changes that each make the pod fit."
    )
    queue = QueuePlaceSerializer(
        source="found.queue", allow_null=True, help_text="Null: the pod waits in no queue that is read here."
    )
    scaling = ScalingReportSerializer(
        source="found.scaling", allow_null=True, help_text="Last report of an autoscaler. Null: none is known."
    )
    funnel = FunnelStepSerializer(source="found.funnel", many=True)
    near_summary = serializers.CharField(source="found.near_summary", help_text="Example: `3 nodes lack only 1 GPU.`")
    near_nodes = NearNodeSerializer(source="near", many=True)
    preemption = PreemptionSerializer(
        source="found.preemption", allow_null=True, help_text="Null: priorities were not compared, or a node fits."
    )
    victims = VictimSerializer(many=True, help_text="Pods that preemption would end on `preemption.node`.")
    higher_priority = HigherPrioritySerializer(
        source="higher", allow_null=True, help_text="Lowest class with which preemption makes room. Null: none."
    )
    scheduler_message = serializers.CharField()
    scheduler_at = serializers.DateTimeField(
        allow_null=True, help_text="Last transition of the pod's PodScheduled condition."
    )
    agreement_ratio = serializers.FloatField(
        source="found.agreement_ratio", allow_null=True,
        help_text="Share of the scheduler's counts that this check confirms, 0 to 1. Null: no scheduler counts.",
    )  # fmt: skip
    differences = serializers.ListField(
        source="found.differences",
        child=serializers.CharField(),
        help_text="Differences from the scheduler's message. The scheduler decides.",
    )
    not_checked = serializers.ListField(source="found.not_checked", child=serializers.CharField())
    nodes_seen_at = serializers.DateTimeField(allow_null=True)


class PodAnswerSerializer(serializers.Serializer):
    why_pending = WhyPendingSerializer(allow_null=True, help_text="Null: the pod does not wait for a node.")


class WhyPending(Edge):
    @extend_schema(responses=PodAnswerSerializer)
    def get(self, request, pod_id: int) -> Response:
        """Returns why the pod waits for a node, and what would change that."""
        pod = self.load(Pod.objects.visible_to(self.user).select_related("cluster__observer"), pod_id)
        now = timezone.now()
        story = waiting_story(pod, load_cluster_freshness(pod.cluster, now=now), now=now)
        return Response({"why_pending": None if story is None else WhyPendingSerializer(story).data})


class PodDetail(Edge):
    @extend_schema(responses=PodStorySerializer)
    def get(self, request, pod_id: int) -> Response:
        """Returns the pod with its owner, GPUs, claims, conditions and Events."""
        pod = self.load(Pod.objects.visible_to(self.user).select_related("cluster__observer", "node"), pod_id)
        return Response(PodStorySerializer(story_of(pod, user=self.user, now=timezone.now())).data)
