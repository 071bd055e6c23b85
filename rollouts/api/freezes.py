"""Freezes of the fleet, a cluster or a pool, and the fleet-wide stop. Lifting one is a resource of its own."""

from typing import Any

import django_filters as filters
from django.db.models import QuerySet
from django.http import Http404
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from edges.rest import KEY, Asked, Edge, Listing, RowSerializer
from fleet.api.serializers import RefSerializer
from fleet.models import Cluster, Pool
from operations.models import Freeze
from people.rights import Permission, require_somewhere, scope_of
from rollouts.api.serializers import KEY_MOST
from rollouts.commands import fleet_freezes
from rollouts.commands.fleet_freezes import Where, bound_by, freeze_scope
from rollouts.queries.restraints import restraint_by


class FreezeSerializer(RowSerializer):
    cluster = RefSerializer(allow_null=True, help_text="The frozen cluster. Null: the whole fleet.")
    pool = RefSerializer(allow_null=True, help_text="The frozen pool. Null: the whole cluster.")
    is_in_force = serializers.SerializerMethodField()
    sentence = serializers.SerializerMethodField(help_text="The sentence that plans show while the freeze binds them.")

    class Meta:
        model = Freeze
        fields = (
            "id", "is_stop", "cluster", "pool", "by", "at", "reason", "until", "binds_rollbacks", "is_in_force",
            "sentence", "ended_at", "ended_by", "ended_reason",
        )  # fmt: skip

    def get_is_in_force(self, freeze: Freeze) -> bool:
        return freeze.is_in_force(now=timezone.now())

    def get_sentence(self, freeze: Freeze) -> str:
        return restraint_by(freeze, now=timezone.now()).sentence


class WhereRequest(Asked):
    cluster = serializers.IntegerField(
        min_value=1, max_value=KEY_MOST, allow_null=True, required=False, help_text="Cluster id. Null: all clusters."
    )
    pool = serializers.IntegerField(
        min_value=1, max_value=KEY_MOST, allow_null=True, required=False, help_text="Pool id. Null: the whole cluster."
    )
    binds_rollbacks = serializers.BooleanField(
        required=False,
        default=False,
        help_text="false: rollbacks continue, so that one operator can always roll back without help.",
    )


class FreezeRequest(WhereRequest):
    reason = serializers.CharField(max_length=1000, help_text="The reason, stored permanently. Waiting plans show it.")
    until = serializers.DateTimeField(
        allow_null=True, required=False, help_text="End of the freeze. Null: until a person lifts the freeze."
    )


class LiftRequest(Asked):
    reason = serializers.CharField(max_length=1000, help_text="The reason, stored permanently.")


class StopRequest(LiftRequest):
    confirm = serializers.BooleanField(help_text="true: confirms a stop of the whole fleet, including rollbacks.")

    def validate_confirm(self, said: bool) -> bool:  # noqa: FBT001 - as DRF calls it
        if not said:
            raise serializers.ValidationError(
                "Send true to confirm. This stops every plan of the fleet, including rollbacks."
            )
        return said


class StopSerializer(serializers.Serializer):
    in_force = FreezeSerializer(allow_null=True, help_text="The stop in force. Null: the fleet is not stopped.")


class BoundPlanSerializer(serializers.Serializer):
    """The effect of a freeze on one plan now."""

    plan = serializers.IntegerField(source="plan.pk")
    title = serializers.CharField(source="plan.title")
    is_bound = serializers.BooleanField(help_text="False: the plan is rolling back and continues.")
    to_go = serializers.IntegerField(help_text="Number of nodes that would stay held.")
    called_back = serializers.IntegerField(help_text="Released nodes that have not begun. They would be held again.")
    going_on = serializers.IntegerField(help_text="Number of nodes that have begun. No label stops them.")
    sentence = serializers.CharField()


class FreezeFilters(filters.FilterSet):
    cluster = filters.CharFilter(field_name="cluster__name", max_length=63, label="Name of the cluster.")
    is_in_force = filters.BooleanFilter(method="in_force", label="true: only freezes that are in force now.")

    def in_force(self, freezes: QuerySet[Freeze], _name: str, wanted: bool) -> QuerySet[Freeze]:  # noqa: FBT001 - as django-filter calls it
        standing = Freeze.objects.in_force(now=timezone.now()).values("pk")
        return freezes.filter(pk__in=standing) if wanted else freezes.exclude(pk__in=standing)


class FreezeEdge(Edge):
    def freeze(self, freeze_id: int) -> Freeze:
        return self.load(Freeze.objects.visible_to(self.user).select_related("cluster", "pool"), freeze_id)

    def where(self, asked: dict[str, Any]) -> Where:
        """Returns the named scope, as far as the caller may see it."""
        cluster_id, pool_id = asked.pop("cluster", None), asked.pop("pool", None)
        if pool_id is None:
            return Where(self.load(Cluster.objects.visible_to(self.user), cluster_id) if cluster_id else None)
        pool = self.load(Pool.objects.visible_to(self.user).select_related("cluster"), pool_id)
        if cluster_id not in (None, pool.cluster_id):
            raise serializers.ValidationError({"pool": "This pool belongs to another cluster."})
        return Where(pool.cluster, pool)


class FreezeList(FreezeEdge, Listing):
    """Lists freezes and stops, the newest first, ended ones included."""

    serializer_class = FreezeSerializer
    filterset_class = FreezeFilters
    queryset = Freeze.objects.none()

    def get_queryset(self) -> QuerySet[Freeze]:
        return Freeze.objects.visible_to(self.user).select_related("cluster", "pool")

    @extend_schema(request=FreezeRequest, responses={201: FreezeSerializer}, parameters=[KEY])
    def post(self, request) -> Response:
        """Freezes releases in the scope from now on. Released nodes that have not begun are held again."""
        require_somewhere(self.user, Permission.STOP)
        asked = self.read(FreezeRequest)
        where = self.where(asked)
        where.require(self.user, Permission.STOP)
        row = fleet_freezes.freeze(where, actor=self.user.username, key=self.key(), now=timezone.now(), **asked)
        return Response(FreezeSerializer(row).data, status=201)


class FreezeDetail(FreezeEdge):
    @extend_schema(responses=FreezeSerializer)
    def get(self, request, freeze_id: int) -> Response:
        return Response(FreezeSerializer(self.freeze(freeze_id)).data)


class FreezeLifts(FreezeEdge):
    @extend_schema(request=LiftRequest, responses={204: None})
    def post(self, request, freeze_id: int) -> Response:
        """Ends a freeze or the stop. Its plans continue if nothing else restrains them."""
        freeze = self.freeze(freeze_id)
        freeze_scope(freeze).require(self.user, Permission.RUN)
        fleet_freezes.lift(freeze, actor=self.user.username, now=timezone.now(), **self.read(LiftRequest))
        return Response(status=204)


class FreezePreviews(FreezeEdge):
    """Previews a freeze. Changes nothing."""

    @extend_schema(request=WhereRequest, responses=BoundPlanSerializer(many=True))
    def post(self, request) -> Response:
        require_somewhere(self.user, Permission.STOP)
        asked = self.read(WhereRequest)
        bound = bound_by(self.where(asked), binds_rollbacks=asked["binds_rollbacks"], user=self.user)
        return Response(BoundPlanSerializer(bound, many=True).data)


class Stop(Edge):
    """The fleet-wide stop. No node is released, also by rollbacks, until a person lifts the stop."""

    @extend_schema(responses=StopSerializer)
    def get(self, request) -> Response:
        if scope_of(self.user, Permission.SEE).nowhere:
            raise Http404
        return Response(StopSerializer({"in_force": fleet_freezes.stop_in_force(now=timezone.now())}).data)

    @extend_schema(request=StopRequest, responses={201: FreezeSerializer}, parameters=[KEY])
    def post(self, request) -> Response:
        Where().require(self.user, Permission.STOP)
        reason = self.read(StopRequest)["reason"]
        row = fleet_freezes.stop(actor=self.user.username, reason=reason, key=self.key(), now=timezone.now())
        return Response(FreezeSerializer(row).data, status=201)


class StopLifts(Edge):
    @extend_schema(request=LiftRequest, responses={204: None})
    def post(self, request) -> Response:
        """Lifts the stop. Plans continue if nothing else restrains them."""
        Where().require(self.user, Permission.RUN)
        fleet_freezes.lift_stop(actor=self.user.username, now=timezone.now(), **self.read(LiftRequest))
        return Response(status=204)
