"""Suspended Jobs that request GPUs, as on the page of pods."""

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from capacity.api.pods import QueuePlaceSerializer
from capacity.suspended_jobs import SHOWN_AT_MOST, suspended_demand
from edges.rest import Edge


class SuspendedJobSerializer(serializers.Serializer):
    cluster = serializers.CharField(source="job.cluster.name")
    namespace = serializers.CharField(source="job.namespace")
    kind = serializers.CharField(source="job.kind", help_text="Job, RayJob, RayCluster, PyTorchJob or MPIJob.")
    name = serializers.CharField(source="job.name")
    pods = serializers.IntegerField(source="job.suspended_pods", help_text="Pods that start once it is resumed.")
    requests = serializers.CharField(help_text="Requests of each pod.")
    gpus = serializers.IntegerField(allow_null=True, help_text="Whole GPUs of all pods. Null: it requests none.")
    created_at = serializers.DateTimeField(source="job.created_at")
    reason = serializers.CharField()
    queue = QueuePlaceSerializer(allow_null=True, help_text="Null: it waits in no queue that is read here.")


class PodlessGroupSerializer(serializers.Serializer):
    cluster = serializers.CharField(source="group.cluster.name")
    namespace = serializers.CharField(source="group.namespace")
    name = serializers.CharField(source="group.name", help_text="Of the PodGroup.")
    owner = serializers.CharField(source="group.owner_name", help_text="Of the Volcano Job.")
    queue = serializers.CharField(source="group.queue")
    requests = serializers.CharField(help_text="GPUs of all its pods.")
    created_at = serializers.DateTimeField(source="group.created_at", allow_null=True)
    reason = serializers.CharField()
    steps = serializers.ListField(child=serializers.CharField())


class SuspendedDemandSerializer(serializers.Serializer):
    jobs = serializers.IntegerField()
    pods = serializers.IntegerField(help_text="Pods that start once all are resumed.")
    gpus = serializers.IntegerField(help_text="Whole GPUs of these pods.")
    shown = SuspendedJobSerializer(many=True, help_text=f"The oldest {SHOWN_AT_MOST} at most.")
    pod_groups = serializers.IntegerField(source="groups", help_text="PodGroups of Volcano that wait without pods.")
    shown_pod_groups = PodlessGroupSerializer(source="shown_groups", many=True)
    unread_clusters = serializers.ListField(
        source="unread", child=serializers.CharField(), help_text="Clusters where one of these kinds is not read."
    )


class SuspendedJobs(Edge):
    @extend_schema(responses=SuspendedDemandSerializer)
    def get(self, request) -> Response:
        """Returns the demand of suspended Jobs. They have no pods, so the scheduler does not see it."""
        return Response(SuspendedDemandSerializer(suspended_demand(self.user)).data)
