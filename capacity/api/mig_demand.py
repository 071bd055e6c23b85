"""The MIG layout of a pool against the requests of the last two weeks, as on its page."""

from django.utils import timezone
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.response import Response

from capacity.free_gpus.mig_demand import MigDemand
from capacity.free_gpus.mig_demand_report import MigDemandReport, mig_demand_of_pool
from capacity.free_gpus.mig_relayout import ChangedNode
from edges.rest import Edge
from fleet.models import Pool

NO_REQUESTS = "Null: nothing was requested."


class ProfileDemandSerializer(serializers.Serializer):
    profile = serializers.CharField(help_text="MIG profile. Blank: whole GPUs.")
    per_gpu = serializers.IntegerField(help_text="Units of one GPU.")
    offered = serializers.IntegerField(help_text="Units that nodes offer now.")
    peak = serializers.IntegerField(help_text="Most units that pods had at one time.")
    usual = serializers.IntegerField(help_text="Units that were enough for 95 % of the time.")
    gpus_now = serializers.IntegerField(help_text="GPUs that the offered units fill. Shapes on one GPU count it each.")
    gpus = serializers.IntegerField(help_text="GPUs of this shape in the layout that serves the requests best.")


class MigDemandSerializer(serializers.Serializer):
    product = serializers.CharField()
    gpus = serializers.IntegerField(help_text="GPUs that are whole or cut.")
    spare = serializers.IntegerField(help_text="GPUs that the best layout does not need.")
    gpu_hours = serializers.FloatField(help_text="Requested GPU-hours.")
    served_ratio = serializers.SerializerMethodField(help_text=f"Share that the best layout serves. {NO_REQUESTS}")
    served_now_ratio = serializers.SerializerMethodField(help_text=f"Share that the present one serves. {NO_REQUESTS}")
    profiles = ProfileDemandSerializer(many=True)
    unknown = serializers.ListField(
        child=serializers.CharField(), help_text="Profiles with an unknown number of slices per GPU. Not counted."
    )

    @extend_schema_field(serializers.FloatField(allow_null=True))
    def get_served_ratio(self, found: MigDemand) -> float | None:
        return round(found.served / found.gpu_hours, 6) if found.gpu_hours else None

    @extend_schema_field(serializers.FloatField(allow_null=True))
    def get_served_now_ratio(self, found: MigDemand) -> float | None:
        return round(found.served_now / found.gpu_hours, 6) if found.gpu_hours else None


class ChangedNodeSerializer(serializers.Serializer):
    node = serializers.IntegerField(source="node.key", help_text="ID of the node to drain and to change.")
    name = serializers.CharField(source="node.name")
    gpus = serializers.IntegerField(source="node.gpus")
    profile_now = serializers.CharField(source="node.profile", help_text="Blank: whole GPUs.")
    profile_then = serializers.CharField(source="profile", help_text="Blank: whole GPUs.")
    gpu_hours_gained = serializers.FloatField(
        source="gain", help_text="Requested GPU-hours of the period that it would have served."
    )
    pods = serializers.SerializerMethodField(help_text="Namespace and name of the pods that move.")

    @extend_schema_field(serializers.ListField(child=serializers.CharField()))
    def get_pods(self, found: ChangedNode) -> list[str]:
        return [pod.name for pod in found.node.pods]


class MigRelayoutSerializer(serializers.Serializer):
    product = serializers.CharField(source="demand.product")
    gpu_hours_gained = serializers.FloatField(source="gain")
    gpus = serializers.IntegerField(help_text="GPUs of the nodes to change.")
    jobs = serializers.ListField(child=serializers.CharField(), help_text="Jobs that start again.")
    gpu_hours_lost = serializers.FloatField(source="gpu_hours", help_text="Work of these jobs.")
    pods_with_empty_dir = serializers.IntegerField(source="with_empty_dir", help_text="They lose this data.")
    gpu_hours_loading = serializers.FloatField(
        source="loading_gpu_hours",
        help_text="GPU-hours until the pods are Ready again, as far as their workloads tell.",
    )
    nodes = ChangedNodeSerializer(many=True, help_text="Empty: no change of a node serves more requests.")
    nodes_staying = serializers.IntegerField(
        source="staying", help_text="Nodes with several shapes, or with a pod that must stay or has no room elsewhere."
    )


class MigDemandReportSerializer(serializers.Serializer):
    begin = serializers.DateTimeField(help_text="14 days ago, or when the cluster was added.")
    products = MigDemandSerializer(many=True, help_text="Products with slices, offered or requested.")
    changes = serializers.SerializerMethodField(help_text="Nodes to give another layout, by product.")
    knows_budgets = serializers.BooleanField(
        help_text="False: no node is proposed, since PodDisruptionBudgets were never read."
    )
    is_cut = serializers.BooleanField(help_text="Older pods of the period are not counted: there are too many.")

    @extend_schema_field(MigRelayoutSerializer(many=True))
    def get_changes(self, found: MigDemandReport) -> list[dict]:
        return list(MigRelayoutSerializer(found.changes.values(), many=True).data)


class MigDemandAnswerSerializer(serializers.Serializer):
    mig_demand = MigDemandReportSerializer(allow_null=True, help_text="Null: the nodes or pods were never read.")


class PoolMigDemand(Edge):
    @extend_schema(responses=MigDemandAnswerSerializer)
    def get(self, request, pool_id: int) -> Response:
        """Returns the MIG layout that would have served the pods of the last two weeks best."""
        pool = self.load(Pool.objects.visible_to(self.user).select_related("cluster"), pool_id)
        report = mig_demand_of_pool(pool, self.user, now=timezone.now())
        return Response(MigDemandAnswerSerializer({"mig_demand": report}).data)
