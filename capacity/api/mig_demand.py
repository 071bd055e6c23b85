"""The MIG layout of a pool against the requests of the last two weeks, as on its page."""

from django.utils import timezone
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.response import Response

from capacity.free_gpus.mig_demand import MigDemand
from capacity.free_gpus.mig_demand_report import mig_demand_of_pool
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


class MigDemandReportSerializer(serializers.Serializer):
    begin = serializers.DateTimeField(help_text="14 days ago, or when the cluster was added.")
    products = MigDemandSerializer(many=True, help_text="Products with slices, offered or requested.")
    is_cut = serializers.BooleanField(help_text="Older pods of the period are not counted: there are too many.")


class MigDemandAnswerSerializer(serializers.Serializer):
    mig_demand = MigDemandReportSerializer(allow_null=True, help_text="Null: the nodes or pods were never read.")


class PoolMigDemand(Edge):
    @extend_schema(responses=MigDemandAnswerSerializer)
    def get(self, request, pool_id: int) -> Response:
        """Returns the MIG layout that would have served the pods of the last two weeks best."""
        pool = self.load(Pool.objects.visible_to(self.user).select_related("cluster"), pool_id)
        report = mig_demand_of_pool(pool, self.user, now=timezone.now())
        return Response(MigDemandAnswerSerializer({"mig_demand": report}).data)
