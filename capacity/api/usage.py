"""The usage of a period, as on its page."""

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from capacity.usage.usage_filter import (
    DAY,
    GROUPINGS,
    HOURS,
    LONGEST,
    ORDERINGS,
    OWN,
    PERIODS,
    WEEK,
    BadPeriod,
    UsageFilter,
)
from capacity.usage.usage_lines import TITLES
from capacity.usage.usage_report import usage_report
from edges.rest import Asked, Edge
from health.telemetry.usage import GpuUse


class UsageAsked(Asked):
    period = serializers.ChoiceField([*PERIODS, OWN], default=WEEK, help_text="UTC days that end today, or `own`.")
    first = serializers.DateField(required=False, allow_null=True, default=None, help_text="Of the period `own`.")
    last = serializers.DateField(required=False, allow_null=True, default=None)
    by = serializers.ChoiceField([*GROUPINGS, DAY], default="pool")
    cluster = serializers.CharField(required=False, max_length=LONGEST, default="", help_text="Name.")
    pool = serializers.CharField(required=False, max_length=LONGEST, default="", help_text="`cluster/name`.")
    namespace = serializers.CharField(required=False, max_length=LONGEST, default="")
    ordering = serializers.ChoiceField(ORDERINGS, default=HOURS)
    limit = serializers.IntegerField(min_value=1, max_value=1000, default=100)
    offset = serializers.IntegerField(min_value=0, max_value=1_000_000, default=0)


class UsageAmountSerializer(serializers.Serializer):
    gpu_hours = serializers.FloatField(source="total", help_text="The sum of `by_use`.")
    by_use = serializers.DictField(
        source="hours", child=serializers.FloatField(),
        help_text=" ".join(f"`{use}`: {TITLES[use][1]}." for use in GpuUse),
    )  # fmt: skip
    cost = serializers.FloatField(
        allow_null=True, help_text="At the pools' prices now, in your currency. Null: no hour has a price."
    )
    cost_idle = serializers.FloatField(allow_null=True, help_text="Of the idle hours. It is a part of `cost`.")
    gpu_hours_without_price = serializers.FloatField(source="unpriced")


class UsageLineSerializer(serializers.Serializer):
    name = serializers.CharField()
    cluster = serializers.CharField(help_text="Blank: a day.")
    pools = serializers.CharField(help_text="Names. Blank: a day.")
    namespace = serializers.CharField()
    workload = serializers.CharField(help_text="`Job/train`. Blank: nothing controls the pod.")
    amount = UsageAmountSerializer()


class CoverageSerializer(serializers.Serializer):
    recorded = serializers.IntegerField(help_text="Hours of clusters that are in the sums.")
    missing = serializers.IntegerField(help_text="Hours of clusters that nobody recorded. They are in no sum.")
    uncounted = serializers.IntegerField(help_text="Nodes without a known number of GPUs. They are in no sum.")


class UsageSerializer(serializers.Serializer):
    first = serializers.DateField()
    last = serializers.DateField()
    coverage = CoverageSerializer()
    total = UsageAmountSerializer()
    days = UsageLineSerializer(many=True)
    lines = UsageLineSerializer(many=True)
    has_more = serializers.BooleanField(help_text="Whether lines follow: raise `offset`.")


class Usage(Edge):
    @extend_schema(parameters=[UsageAsked], responses=UsageSerializer)
    def get(self, request) -> Response:
        """Returns GPU-hours by use and their cost in a period: in all, by day, and by pool, namespace or workload."""
        asked = UsageAsked(data=request.query_params.dict())
        asked.is_valid(raise_exception=True)
        given = dict(asked.validated_data)
        start, most = given.pop("offset"), given.pop("limit")
        if given["period"] != OWN:
            given |= {"first": None, "last": None}
        try:
            wanted = UsageFilter(**given).checked()
        except BadPeriod as refusal:
            raise serializers.ValidationError({"first": str(refusal)}) from refusal
        report = usage_report(self.user, wanted, now=timezone.now(), start=start, most=most)
        return Response(UsageSerializer(report).data)
