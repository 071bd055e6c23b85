"""Rules, their shadow mode, and the limits of pools."""

from typing import Any

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from edges.rest import Asked, Edge, RowSerializer
from fleet.api.serializers import RefSerializer
from fleet.models import Pool
from health.api.exported_metrics import NodesCountedSerializer
from health.inbox import pool_limits, shadow_mode
from health.inbox.pool_limits import LimitsAsked, put_limits, remove_limits, require_limit
from health.inbox.rulebook import on_page
from health.models import PoolLimits, RuleShadow
from people.rights import Permission, require, scope_of


class RuleShadowSerializer(RowSerializer):
    class Meta:
        model = RuleShadow
        fields = ("id", "rule", "by", "at", "reason", "ended_at", "ended_by", "ended_reason")


class LimitsSerializer(serializers.Serializer):
    """Limits in the unit of the rule; higher values are worse."""

    warn = serializers.FloatField()
    critical = serializers.FloatField(allow_null=True, help_text="Lowest critical value. Null: no critical severity.")
    warn_after_s = serializers.FloatField()
    critical_after_s = serializers.FloatField()
    unit = serializers.CharField()
    by_class = serializers.CharField(
        help_text="Limits by the workload class of a pool, in a sentence. Blank: the numbers hold everywhere."
    )


class SeenInSerializer(serializers.Serializer):
    cluster = serializers.CharField()
    nodes = NodesCountedSerializer(help_text="Number of nodes by whether they export any metric that the rule reads.")


class RuleSerializer(serializers.Serializer):
    rule = serializers.CharField(source="entry.key")
    title = serializers.CharField(source="entry.title")
    says = serializers.CharField(source="entry.says")
    of = serializers.CharField(source="entry.of")
    after_s = serializers.FloatField(source="entry.after_s", help_text="Seconds that the fault must last.")
    reads = serializers.ListField(child=serializers.CharField(), source="entry.reads")
    listed_under = serializers.ListField(child=serializers.CharField(), source="entry.explained_by")
    steps = serializers.ListField(
        child=serializers.CharField(), source="entry.steps", help_text="Recommended steps for its findings, in order."
    )
    open = serializers.IntegerField(
        help_text="Open findings of this rule that you may see. Findings listed under a cause are not included."
    )
    listed = serializers.IntegerField(help_text="Open findings of this rule that are listed under their causes.")
    accepted = serializers.IntegerField()
    dismissed = serializers.IntegerField()
    shadow = RuleShadowSerializer(allow_null=True, help_text="The shadow mode of the rule. Null: it is off.")
    would_notify = serializers.IntegerField(help_text="Number of findings that would be open now. Only in shadow mode.")
    limits = LimitsSerializer(
        allow_null=True, help_text="The rule's own limits. Null: a pool cannot change limits of this rule."
    )
    blind_in = serializers.ListField(
        child=serializers.CharField(),
        help_text="Clusters whose telemetry source answers but exports none of the metrics that the rule reads.",
    )
    seen_in = SeenInSerializer(many=True, help_text="For GPU rules: the coverage in each cluster with telemetry.")
    silent_in = serializers.ListField(
        child=serializers.CharField(),
        help_text="For rules about GPUs: clusters whose GPUs send no telemetry. The rule finds nothing there.",
    )


class PoolLimitsSerializer(RowSerializer):
    pool = RefSerializer()

    class Meta:
        model = PoolLimits
        fields = (
            "id", "pool", "rule", "warn", "critical", "warn_after_s", "critical_after_s", "by", "at", "reason",
            "version",
        )  # fmt: skip


class RuleShadowRequest(Asked):
    rule = serializers.CharField(max_length=63)
    reason = serializers.CharField(max_length=1000, help_text="The reason, shown during shadow mode.")


class RuleShadowEndRequest(Asked):
    reason = serializers.CharField(max_length=1000, help_text="The reason, stored permanently.")


class PoolLimitsRequest(Asked):
    rule = serializers.CharField(max_length=63)
    warn = serializers.FloatField()
    critical = serializers.FloatField(allow_null=True, default=None)
    warn_after_s = serializers.IntegerField(min_value=0, max_value=86_400)
    critical_after_s = serializers.IntegerField(min_value=0, max_value=86_400, default=0)
    version = serializers.IntegerField(
        min_value=1, max_value=2**31 - 1, allow_null=True, default=None,
        help_text="The `version` that you read. Null: the pool has no limits yet.",
    )  # fmt: skip
    reason = serializers.CharField(max_length=1000, help_text="The reason, shown beside the limits.")


class PoolLimitsRemovalRequest(Asked):
    version = serializers.IntegerField(min_value=1, max_value=2**31 - 1, help_text="The `version` that was read.")
    reason = serializers.CharField(max_length=1000, help_text="The reason, stored permanently.")


class RuleList(Edge):
    @extend_schema(responses=RuleSerializer(many=True))
    def get(self, request) -> Response:
        """Lists every rule by title."""
        return Response(RuleSerializer(on_page(self.user, now=timezone.now()), many=True).data)


class RuleShadowList(Edge):
    @extend_schema(request=RuleShadowRequest, responses={201: RuleShadowSerializer})
    def post(self, request) -> Response:
        """Starts shadow mode: the rule runs but notifies nobody. Only admins of the fleet may do this."""
        require(self.user, Permission.ADMINISTER)
        row = shadow_mode.begin(actor=self.user.get_username(), now=timezone.now(), **self.read(RuleShadowRequest))
        return Response(RuleShadowSerializer(row).data, status=201)


class RuleShadowEnds(Edge):
    @extend_schema(request=RuleShadowEndRequest, responses={204: None})
    def post(self, request, shadow_id: int) -> Response:
        """Ends shadow mode. Findings that persist are open."""
        sees = not scope_of(self.user, Permission.SEE).nowhere
        row = self.load(RuleShadow.objects.all() if sees else RuleShadow.objects.none(), shadow_id)
        require(self.user, Permission.ADMINISTER)
        shadow_mode.end_shadow_mode(
            row, actor=self.user.get_username(), now=timezone.now(), **self.read(RuleShadowEndRequest)
        )
        return Response(status=204)


class PoolLimitsList(Edge):
    @extend_schema(responses=PoolLimitsSerializer(many=True))
    def get(self, request, pool_id: int) -> Response:
        """Lists the pool's own limits."""
        pool = self.pool(pool_id)
        return Response(
            PoolLimitsSerializer(PoolLimits.objects.filter(pool=pool).select_related("pool"), many=True).data
        )

    @extend_schema(request=PoolLimitsRequest, responses={201: PoolLimitsSerializer})
    def post(self, request, pool_id: int) -> Response:
        """Sets a pool's own limits for a rule. They apply from the next evaluation, within ten seconds."""
        pool = self.pool(pool_id)
        require_limit(self.user, pool)
        asked: dict[str, Any] = self.read(PoolLimitsRequest)
        limits = LimitsAsked(**{name: asked[name] for name in pool_limits.COLUMNS})
        row = put_limits(
            pool, asked["rule"], limits, version=asked["version"], actor=self.user.get_username(),
            reason=asked["reason"], now=timezone.now(),
        )  # fmt: skip
        return Response(PoolLimitsSerializer(row).data, status=201)

    def pool(self, pool_id: int) -> Pool:
        return self.load(Pool.objects.visible_to(self.user).select_related("cluster"), pool_id)


class PoolLimitsRemovals(Edge):
    @extend_schema(request=PoolLimitsRemovalRequest, responses={204: None})
    def post(self, request, limits_id: int) -> Response:
        """Removes a pool's limits. The rule's own limits apply again."""
        row = self.load(PoolLimits.objects.visible_to(self.user).select_related("pool__cluster"), limits_id)
        require_limit(self.user, row.pool)
        remove_limits(row, actor=self.user.get_username(), now=timezone.now(), **self.read(PoolLimitsRemovalRequest))
        return Response(status=204)
