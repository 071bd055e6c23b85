"""Proposals to defragment a pool, as on its page."""

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from capacity.free_gpus.defragmentation_report import defragmentation_of_pool
from edges.rest import Edge
from fleet.models import Pool


class MoveSerializer(serializers.Serializer):
    pod = serializers.CharField(source="pod.name", help_text="Namespace and name.")
    owner = serializers.CharField(source="pod.owner", help_text="Kind, namespace and name of its controller.")
    gpus = serializers.IntegerField(source="pod.gpus")
    gpu_hours = serializers.FloatField(source="pod.gpu_hours", help_text="Work of a job that starts again.")
    gpu_hours_loading = serializers.FloatField(
        source="pod.loading_gpu_hours", help_text="GPU-hours until it is Ready again, as far as its workload tells."
    )
    target = serializers.CharField(help_text="A node with room. The scheduler may choose another.")


class EmptiedNodeSerializer(serializers.Serializer):
    node = serializers.IntegerField(source="key", help_text="ID of the node to drain.")
    name = serializers.CharField()
    gain = serializers.IntegerField(help_text="More pods of the size that fit once it and those before are empty.")
    moves = MoveSerializer(many=True)


class ProposalSerializer(serializers.Serializer):
    gpus_of_each = serializers.IntegerField(source="size", help_text="GPUs of one pod.")
    fits_now = serializers.IntegerField(help_text="Pods of this size that fit now.")
    fits_after = serializers.IntegerField(help_text="Pods of this size that fit once the nodes are empty.")
    gpus_gained = serializers.IntegerField(help_text="GPUs that become usable for pods of this size.")
    gpus_moved = serializers.IntegerField(source="gpus")
    gpu_hours_lost = serializers.FloatField(source="gpu_hours")
    gpu_hours_loading = serializers.FloatField(
        source="loading_gpu_hours",
        help_text="GPU-hours until the pods are Ready again, as far as their workloads tell.",
    )
    jobs = serializers.ListField(child=serializers.CharField(), help_text="Jobs that start again.")
    pods_with_empty_dir = serializers.IntegerField(source="with_empty_dir", help_text="They lose this data.")
    nodes = EmptiedNodeSerializer(many=True, help_text="Nodes to drain. Empty: no move makes room for one more pod.")


class DefragmentationSerializer(serializers.Serializer):
    proposals = ProposalSerializer(many=True, help_text="One for each size, independent of the others.")
    nodes_compared = serializers.IntegerField(source="nodes", help_text="Ready nodes whose GPUs are all whole.")
    nodes_staying = serializers.IntegerField(source="staying", help_text="Of these, nodes with a pod that must stay.")
    as_of = serializers.DateTimeField(
        allow_null=True, help_text="Last update of the nodes and pods. Null: they are current."
    )


class DefragmentationAnswerSerializer(serializers.Serializer):
    defragmentation = DefragmentationSerializer(
        allow_null=True, help_text="Null: nodes, pods or PodDisruptionBudgets were never read."
    )


class PoolDefragmentation(Edge):
    @extend_schema(responses=DefragmentationAnswerSerializer)
    def get(self, request, pool_id: int) -> Response:
        """Returns the nodes that a drain would empty, so that more pods of 2, 4 or 8 GPUs fit."""
        pool = self.load(Pool.objects.visible_to(self.user), pool_id)
        report = defragmentation_of_pool(pool, self.user, now=timezone.now())
        return Response(DefragmentationAnswerSerializer({"defragmentation": report}).data)
