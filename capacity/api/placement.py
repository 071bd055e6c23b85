"""The placement of a pool's running pods, as on its page."""

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from capacity.placements.placement_report import PolicyState, placement_of_pool
from edges.rest import Edge
from fleet.models import Pool
from fleet.models.pool import PlacementPolicy


class PackSerializer(serializers.Serializer):
    used = serializers.IntegerField(help_text="Nodes with pods that have whole GPUs.")
    needed = serializers.IntegerField(help_text="Nodes needed if the pods were packed, by GPUs alone.")
    free = serializers.IntegerField(help_text="Whole GPUs on the used nodes that no pod has.")


class ConcentratedSerializer(serializers.Serializer):
    name = serializers.CharField(help_text="Kind, namespace and name of the workload.")
    pods = serializers.IntegerField()
    domain = serializers.CharField(help_text="The value of the label with the most of these pods.")
    pods_in_domain = serializers.IntegerField()


class SpreadSerializer(serializers.Serializer):
    domains = serializers.IntegerField(help_text="Values of the label on the GPU nodes of the pool.")
    unlabelled = serializers.IntegerField(help_text="GPU nodes without the label. Their pods are not counted.")
    workloads = serializers.IntegerField(help_text="Workloads with at least two running pods.")
    concentrated = serializers.IntegerField(
        help_text="Of these, with more than half of the pods, and a quarter more than an even share, in one domain."
    )
    worst = ConcentratedSerializer(many=True)


class SharedSerializer(serializers.Serializer):
    nodes = serializers.IntegerField(help_text="Nodes with shared GPUs.")
    read = serializers.IntegerField(help_text="Nodes whose pods are counted here.")
    gpus = serializers.IntegerField(help_text="Shared GPUs with pods of several namespaces.")
    most = serializers.IntegerField(help_text="Most namespaces on one GPU.")
    unplaced = serializers.IntegerField(help_text="Pods on unknown GPUs. They are not counted.")


class PlacementSerializer(serializers.Serializer):
    placement_policy = serializers.ChoiceField(PlacementPolicy.choices, source="policy")
    spread_label = serializers.CharField(source="label", help_text="The node label to spread over. Blank: hosts.")
    state = serializers.ChoiceField(
        [state.value for state in PolicyState],
        help_text="unknown: fewer than two domains are known. no_pods: no running pods to compare.",
    )
    pack = PackSerializer()
    spread = SpreadSerializer()
    shared = SharedSerializer(allow_null=True, help_text="Null: no GPU of the pool is shared.")


class PlacementAnswerSerializer(serializers.Serializer):
    placement = PlacementSerializer(allow_null=True, help_text="Null: the nodes or pods were never read.")


class PoolPlacement(Edge):
    @extend_schema(responses=PlacementAnswerSerializer)
    def get(self, request, pool_id: int) -> Response:
        """Compares the running pods of the pool with its placement policy."""
        pool = self.load(Pool.objects.visible_to(self.user), pool_id)
        report = placement_of_pool(pool, self.user, now=timezone.now())
        return Response(PlacementAnswerSerializer({"placement": report}).data)
