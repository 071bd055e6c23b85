"""The gates of new stages on the nodes of a pool."""

from typing import Any

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from edges.rest import Asked, Edge
from fleet.models import Pool
from people.rights import require
from rollouts.api.serializers import GateOptions
from rollouts.commands.pool_gates import LENGTH, MAY, change_gates, mark_of, preview_gates
from rollouts.commands.stage_drafts import gates_by_default
from rollouts.models import PoolGates
from rollouts.queries.pool_gates import ClusterGates, gates_of


class PoolGatesSerializer(serializers.Serializer):
    """The gates of a pool, which replace usual gates with the same key.

    `default` are those of a new stage of the pool. `previous` are those before the last change: PUT them to undo it.
    """

    gates = GateOptions()
    default = GateOptions()
    previous = GateOptions(allow_null=True)
    mark = serializers.CharField(help_text="Mark of the gates, also the ETag; see `was` of PUT.")
    by = serializers.CharField(help_text="Who changed them last. Blank: nobody.")
    at = serializers.DateTimeField(allow_null=True, help_text="Time of the last change. Null: none.")


class PoolGatesChange(Asked):
    """All gates of the pool. {}: only the usual ones."""

    gates = GateOptions()
    was = serializers.CharField(
        max_length=LENGTH, required=False, default="", allow_blank=True, help_text="The `mark` that was read."
    )
    reason = serializers.CharField(max_length=1000, help_text="The reason, stored permanently.")


class PoolGatesPreviewRequest(Asked):
    gates = GateOptions()


class PoolGatesPreviewSerializer(serializers.Serializer):
    """A change of the gates of a pool."""

    is_change = serializers.BooleanField()
    diff = serializers.ListField(child=serializers.CharField(), help_text="Lines of YAML, each with +, - or a blank.")
    mark = serializers.CharField(help_text="Mark of the gates as they are now.")


def _data(pool: Pool, row: PoolGates | None) -> dict[str, Any]:
    gates = row.options if row else {}
    usual = ClusterGates({pool.pk: gates}).usual_of(pool.pk, gates_by_default(pool.cluster_id, pool.pk))
    last = {"previous": row.previous, "by": row.by, "at": row.at} if row else {"previous": None, "by": "", "at": None}
    return dict(PoolGatesSerializer({"gates": gates, "default": usual, "mark": mark_of(gates), **last}).data)


class _OfAPool(Edge):
    def pool(self, pool_id: int) -> Pool:
        return self.load(Pool.objects.visible_to(self.user).select_related("cluster"), pool_id)


class PoolGatesDetail(_OfAPool):
    mark_field = "mark"

    @extend_schema(responses=PoolGatesSerializer)
    def get(self, request, pool_id: int) -> Response:
        pool = self.pool(pool_id)
        return Response(_data(pool, gates_of(pool)))

    @extend_schema(request=PoolGatesChange, responses=PoolGatesSerializer)
    def put(self, request, pool_id: int) -> Response:
        """Sets the gates of new stages of the pool. Existing plans keep their gates."""
        pool = self.pool(pool_id)
        asked = self.read(PoolGatesChange)
        gates, reason = asked["gates"], asked["reason"]
        row = change_gates(pool, gates, seen=asked["was"], actor=self.user, reason=reason, now=timezone.now())
        return Response(_data(pool, row))


class PoolGatesPreviews(_OfAPool):
    @extend_schema(request=PoolGatesPreviewRequest, responses=PoolGatesPreviewSerializer)
    def post(self, request, pool_id: int) -> Response:
        """Returns what a change does to the default gates of new stages. Changes nothing."""
        pool = self.pool(pool_id)
        require(self.user, MAY, cluster_id=pool.cluster_id, where=f"cluster {pool.cluster.name}")
        shown = preview_gates(pool, self.read(PoolGatesPreviewRequest)["gates"])
        return Response(PoolGatesPreviewSerializer(shown).data)
