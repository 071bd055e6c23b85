"""The GPU pods that do not run, in numbers, as on the home page."""

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from capacity.pods.unstarted_pods import UnstartedPods, unstarted_pods
from edges.rest import Edge
from fleet.states.pod import PodState
from fleet.web.summary import cluster_lines


class UnstartedPodsSerializer(serializers.Serializer):
    pending = serializers.SerializerMethodField(help_text="Pods that wait for a node. Null: no cluster reports pods.")
    starting = serializers.SerializerMethodField()
    failing = serializers.SerializerMethodField()
    rejected = serializers.SerializerMethodField()
    waiting_since = serializers.DateTimeField(
        allow_null=True, help_text="Creation of the oldest pod that waits for a node. Null: none is known to wait."
    )
    unread_clusters = serializers.ListField(
        source="unread", child=serializers.CharField(), help_text="Clusters whose pods were never read."
    )
    hidden_clusters = serializers.ListField(
        source="hidden",
        child=serializers.CharField(),
        help_text="Clusters of which you see pools alone: pods without a node are not counted.",
    )
    as_of = serializers.DateTimeField(allow_null=True, help_text="Oldest update of these pods. Null: all are live.")

    def get_pending(self, found: UnstartedPods) -> int | None:
        return found.counts.get(PodState.PENDING)

    def get_starting(self, found: UnstartedPods) -> int | None:
        return found.counts.get(PodState.STARTING)

    def get_failing(self, found: UnstartedPods) -> int | None:
        return found.counts.get(PodState.FAILING)

    def get_rejected(self, found: UnstartedPods) -> int | None:
        return found.counts.get(PodState.REJECTED)


class UnstartedPodCounts(Edge):
    @extend_schema(responses=UnstartedPodsSerializer)
    def get(self, request) -> Response:
        """Returns how many GPU pods do not run, by state, and the longest wait for a node."""
        now = timezone.now()
        found = unstarted_pods(self.user, cluster_lines(self.user, now=now), now=now)
        return Response(UnstartedPodsSerializer(found).data)
