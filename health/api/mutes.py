"""Mutes of rules: of one finding, a node, a pool or a cluster. Lifting one is a resource of its own."""

from typing import Any

import django_filters as filters
from django.db.models import QuerySet
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from edges.rest import KEY, Asked, Edge, Listing, RowSerializer
from fleet.api.filters import Text
from fleet.api.serializers import RefSerializer
from fleet.models import Cluster, Node, Pool
from health.inbox import rule_mutes
from health.inbox.rights import require_mute
from health.inbox.verbs import MAY
from health.models import Finding, Mute
from people.rights import require_somewhere

MOST_KEY = 2**63 - 1


class MuteSerializer(RowSerializer):
    cluster = RefSerializer()
    pool = RefSerializer(allow_null=True, help_text="The pool to which the mute is limited. Null: no pool.")
    is_in_force = serializers.SerializerMethodField()

    class Meta:
        model = Mute
        fields = (
            "id", "cluster", "rule", "subject", "node_name", "pool", "by", "at", "reason", "until", "is_in_force",
            "ended_at", "ended_by", "ended_reason",
        )  # fmt: skip

    def get_is_in_force(self, mute: Mute) -> bool:
        return mute.is_in_force(now=timezone.now())


class MuteRequest(Asked):
    finding = serializers.IntegerField(
        min_value=1, max_value=MOST_KEY, required=False, help_text="Finding id. Later occurrences are muted, too."
    )
    rule = serializers.CharField(max_length=63, required=False, help_text="Rule key. Required without `finding`.")
    node = serializers.IntegerField(min_value=1, max_value=MOST_KEY, required=False, help_text="Node id.")
    pool = serializers.IntegerField(min_value=1, max_value=MOST_KEY, required=False, help_text="Pool id.")
    cluster = serializers.IntegerField(min_value=1, max_value=MOST_KEY, required=False, help_text="Cluster id.")
    reason = serializers.CharField(max_length=1000, help_text="The reason, shown while the mute is in force.")
    until = serializers.DateTimeField(help_text="End, within 14 days. Findings that persist are open again then.")

    def validate(self, asked: dict[str, Any]) -> dict[str, Any]:
        places = [name for name in ("finding", "node", "pool", "cluster") if name in asked]
        if len(places) != 1:
            raise serializers.ValidationError("Name one of: finding, node, pool, cluster.")
        if ("rule" in asked) == (places == ["finding"]):
            raise serializers.ValidationError({"rule": "Give `rule` with a node, a pool or a cluster only."})
        return asked


class MuteLiftRequest(Asked):
    reason = serializers.CharField(max_length=1000, help_text="The reason, stored permanently.")


class MuteFilters(filters.FilterSet):
    cluster = Text(field_name="cluster__name", label="Name of the cluster.")
    rule = Text()
    is_in_force = filters.BooleanFilter(method="in_force", label="true: only mutes that are in force now.")

    def in_force(self, mutes: QuerySet[Mute], _name: str, wanted: bool) -> QuerySet[Mute]:  # noqa: FBT001 - as django-filter calls it
        standing = Mute.objects.in_force(now=timezone.now()).values("pk")
        return mutes.filter(pk__in=standing) if wanted else mutes.exclude(pk__in=standing)


class MuteEdge(Edge):
    def mute(self, mute_id: int) -> Mute:
        return self.load(Mute.objects.visible_to(self.user).select_related("cluster", "pool", "node"), mute_id)

    def scoped(self, asked: dict[str, Any]) -> Mute:
        """Returns an unsaved mute of the requested scope, if the caller may see it."""
        if "finding" in asked:
            rows = Finding.objects.visible_to(self.user).select_related("cluster", "node")
            return rule_mutes.scoped(self.load(rows, asked["finding"]), "finding")
        rule = asked["rule"]
        if "node" in asked:
            node = self.load(Node.objects.visible_to(self.user).select_related("cluster"), asked["node"])
            return rule_mutes.mute_of_place(node.cluster, rule, node=node)
        if "pool" in asked:
            pool = self.load(Pool.objects.visible_to(self.user).select_related("cluster"), asked["pool"])
            return rule_mutes.mute_of_place(pool.cluster, rule, pool=pool)
        return rule_mutes.mute_of_place(self.load(Cluster.objects.visible_to(self.user), asked["cluster"]), rule)


class MuteList(MuteEdge, Listing):
    """Lists mutes, newest first, including ended ones."""

    serializer_class = MuteSerializer
    filterset_class = MuteFilters
    queryset = Mute.objects.none()

    def get_queryset(self) -> QuerySet[Mute]:
        return Mute.objects.visible_to(self.user).select_related("cluster", "pool")

    @extend_schema(request=MuteRequest, responses={201: MuteSerializer}, parameters=[KEY])
    def post(self, request) -> Response:
        """Mutes a rule in a scope. Until the mute ends, nobody is notified of its findings there."""
        require_somewhere(self.user, MAY)
        asked = self.read(MuteRequest)
        row = self.scoped(asked)
        require_mute(self.user, row)
        made = rule_mutes.mute(
            row, actor=self.user.get_username(), reason=asked["reason"], until=asked["until"], key=self.key(),
            now=timezone.now(),
        )  # fmt: skip
        return Response(MuteSerializer(made).data, status=201)


class MuteDetail(MuteEdge):
    @extend_schema(responses=MuteSerializer)
    def get(self, request, mute_id: int) -> Response:
        return Response(MuteSerializer(self.mute(mute_id)).data)


class MuteLifts(MuteEdge):
    @extend_schema(request=MuteLiftRequest, responses={204: None})
    def post(self, request, mute_id: int) -> Response:
        """Ends a mute early. Findings that persist in its scope are open again."""
        row = self.mute(mute_id)
        require_mute(self.user, row)
        rule_mutes.lift(row, actor=self.user.get_username(), now=timezone.now(), **self.read(MuteLiftRequest))
        return Response(status=204)
