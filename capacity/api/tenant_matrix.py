"""The GPUs of a pool's nodes by tenant, as on its page."""

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from capacity.placements.tenant_matrix import NODES_AT_MOST, GpuHolding, tenant_matrix
from edges.rest import Asked, Edge
from fleet.models import Pool

LONGEST_NAME = 253


class TenantMatrixAsked(Asked):
    after = serializers.CharField(
        required=False, max_length=LONGEST_NAME, default="", help_text="Name of the last node of the answer before."
    )


class MatrixGpuSerializer(serializers.Serializer):
    index = serializers.IntegerField(allow_null=True, help_text="Null: only the UUID is known.")
    uuid = serializers.CharField()
    state = serializers.ChoiceField(
        [state.value for state in GpuHolding],
        help_text="closed: free, on a node that is not ready or cordoned. unknown: a pod has it, or it is free.",
    )
    namespaces = serializers.ListField(source="tenants", child=serializers.CharField())
    pods = serializers.ListField(child=serializers.CharField(), help_text="Namespace and name.")


class MatrixNodeSerializer(serializers.Serializer):
    node = serializers.IntegerField(source="key", help_text="ID of the node.")
    name = serializers.CharField()
    gpus = MatrixGpuSerializer(many=True)
    unplaced = serializers.ListField(
        child=serializers.CharField(), help_text="Namespaces of pods that have GPUs of the node; no source tells which."
    )


class TenantMatrixSerializer(serializers.Serializer):
    count = serializers.IntegerField(source="number", help_text="GPU nodes of the pool.")
    as_of = serializers.DateTimeField(allow_null=True, help_text="Last update of the pods. Null: they are current.")
    nodes = MatrixNodeSerializer(many=True, help_text=f"By name, at most {NODES_AT_MOST}.")


class TenantMatrixAnswerSerializer(serializers.Serializer):
    tenants = TenantMatrixSerializer(allow_null=True, help_text="Null: the nodes or pods were never read.")


class PoolTenants(Edge):
    @extend_schema(parameters=[TenantMatrixAsked], responses=TenantMatrixAnswerSerializer)
    def get(self, request, pool_id: int) -> Response:
        """Returns the GPUs of the pool's nodes with the namespaces that have them."""
        asked = TenantMatrixAsked(data=request.query_params.dict())
        asked.is_valid(raise_exception=True)
        pool = self.load(Pool.objects.visible_to(self.user).select_related("cluster__observer"), pool_id)
        found = tenant_matrix(pool, self.user, now=timezone.now(), after=asked.validated_data["after"])
        return Response(TenantMatrixAnswerSerializer({"tenants": found}).data)
