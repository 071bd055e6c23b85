"""One pod with its whole story, as on its page."""

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from capacity.pods.story import story_of
from edges.rest import Edge, RowSerializer
from fleet.api.pods import PodRowSerializer
from fleet.models import ClusterEvent, Pod


class PodConditionSerializer(serializers.Serializer):
    type = serializers.CharField()
    status = serializers.CharField(help_text="True, False, Unknown.")
    reason = serializers.CharField(default="")
    message = serializers.CharField(default="")
    at = serializers.DateTimeField(default=None, allow_null=True, help_text="Last transition.")


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
    profile = serializers.CharField(source="allocation.profile", help_text="Of its slice; blank: the whole GPU.")
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


class PodStorySerializer(serializers.Serializer):
    pod = PodRowSerializer(source="row")
    owner = serializers.CharField(source="line.owner", help_text="Topmost watched owner: `Deployment chat`.")
    pools = serializers.ListField(source="line.pools", child=serializers.CharField(), help_text="Of its node.")
    gpus_held = HeldGpuSerializer(source="gpus", many=True)
    resource_claims = PodClaimSerializer(source="claims", many=True)
    missing_claims = serializers.ListField(child=serializers.CharField())
    conditions = PodConditionSerializer(many=True, help_text="Of a pod without a node.")
    placement = serializers.JSONField(source="pod.placement", help_text="What it asks of its node, while it has none.")
    events = PodEventSerializer(many=True, help_text="Of the pod and its direct owner, newest first.")


class PodDetail(Edge):
    @extend_schema(responses=PodStorySerializer)
    def get(self, request, pod_id: int) -> Response:
        """Returns the pod with its owner, GPUs, claims, conditions and Events."""
        pod = self.load(Pod.objects.visible_to(self.user).select_related("cluster__observer", "node"), pod_id)
        return Response(PodStorySerializer(story_of(pod, user=self.user, now=timezone.now())).data)
