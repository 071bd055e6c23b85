"""The usage of a period, as on its page."""

from django.utils import timezone
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.response import Response

from capacity.usage.advice import UsePattern
from capacity.usage.usage_filter import (
    DAY,
    GROUPINGS,
    HOURS,
    LONGEST,
    LONGEST_WORKLOAD,
    ORDERINGS,
    OWN,
    PERIODS,
    WEEK,
    BadPeriod,
    UsageFilter,
)
from capacity.usage.usage_lines import PART_TITLES, TITLES, UsageAmount, UsePart
from capacity.usage.usage_report import usage_report
from capacity.usage.weekly_report import weekly_report
from edges.rest import Asked, Edge
from health.telemetry.usage import GpuUse


class UsageAsked(Asked):
    period = serializers.ChoiceField(
        [*PERIODS, OWN], default=WEEK, help_text="Period that ends today, in UTC days. own: from `first` to `last`."
    )
    first = serializers.DateField(
        required=False, allow_null=True, default=None, help_text="First day of the period `own`."
    )
    last = serializers.DateField(required=False, allow_null=True, default=None)
    by = serializers.ChoiceField([*GROUPINGS, DAY], default="pool")
    cluster = serializers.CharField(required=False, max_length=LONGEST, default="", help_text="Name of the cluster.")
    pool = serializers.CharField(required=False, max_length=LONGEST, default="", help_text="Pool as `cluster/name`.")
    namespace = serializers.CharField(required=False, max_length=LONGEST, default="")
    workload = serializers.CharField(
        required=False, max_length=LONGEST_WORKLOAD, default="",
        help_text="Kind and name, as `Deployment/chat`. A Deployment includes its ReplicaSets, a CronJob its Jobs.",
    )  # fmt: skip
    ordering = serializers.ChoiceField(ORDERINGS, default=HOURS)
    limit = serializers.IntegerField(min_value=1, max_value=1000, default=100)
    offset = serializers.IntegerField(min_value=0, max_value=1_000_000, default=0)


class UsageAmountSerializer(serializers.Serializer):
    gpu_hours = serializers.FloatField(source="total", help_text="The sum of `by_use`.")
    by_use = serializers.DictField(
        source="hours", child=serializers.FloatField(),
        help_text=" ".join(f"`{use}`: {TITLES[use][1]}." for use in GpuUse),
    )  # fmt: skip
    by_part = serializers.DictField(
        source="parts", child=serializers.FloatField(),
        help_text=" ".join(f"`{part}`: {PART_TITLES[part][1]}." for part in UsePart),
    )  # fmt: skip
    used_with_estimate = serializers.FloatField(
        source="rated", help_text="Used hours with an estimate of `under_used`. The others have none."
    )
    cost = serializers.FloatField(
        allow_null=True,
        help_text="Cost at the prices of each day. Null: no hour has a price, or there are several currencies.",
    )
    costs = serializers.DictField(
        child=serializers.FloatField(), help_text="Cost by currency. Blank key: the one currency of this installation."
    )
    cost_idle = serializers.FloatField(allow_null=True, help_text="Cost of the idle hours, a part of `cost`.")
    cost_by_use = serializers.SerializerMethodField(
        help_text="Cost of each use; the sum is `cost`. Null, as in `cost`."
    )
    cost_by_part = serializers.SerializerMethodField(
        help_text="Cost of each part. Null, as in `cost`: without a price, or in several currencies."
    )
    gpu_hours_without_price = serializers.FloatField(source="unpriced")

    @extend_schema_field(serializers.DictField(child=serializers.FloatField(allow_null=True)))
    def get_cost_by_use(self, amount: UsageAmount) -> dict[str, float | None]:
        return {use.value: amount.cost_of(use) for use in GpuUse}

    @extend_schema_field(serializers.DictField(child=serializers.FloatField(allow_null=True)))
    def get_cost_by_part(self, amount: UsageAmount) -> dict[str, float | None]:
        return {part.value: amount.cost_of(part) for part in UsePart}


class UsageLineSerializer(serializers.Serializer):
    name = serializers.CharField()
    cluster = serializers.CharField(help_text="Name of the cluster. Blank: the line is a day.")
    pools = serializers.CharField(help_text="Names of the pools. Blank: the line is a day.")
    namespace = serializers.CharField()
    workload = serializers.CharField(
        help_text="Kind and name, such as `Job/train`. Blank: no controller, or another grouping."
    )
    owner = serializers.CharField(help_text="Value of the owner label, of the grouping `owner`. Blank: none is known.")
    recorded_hours = serializers.IntegerField(
        source="recorded", allow_null=True,
        help_text="Recorded hours of a day, added up over the clusters. Null: the line is no day.",
    )  # fmt: skip
    amount = UsageAmountSerializer(
        source="known_amount", allow_null=True, help_text="Null: a day of which no hour is recorded."
    )


class CoverageSerializer(serializers.Serializer):
    recorded = serializers.IntegerField(help_text="Recorded hours, added up over the clusters. The sums include them.")
    missing = serializers.IntegerField(
        help_text="Hours without a record, added up over the clusters. The sums omit them."
    )
    inferred = serializers.IntegerField(
        help_text="Of `recorded`, hours that began before the cluster was added: known by the start times of pods."
    )
    uncounted = serializers.IntegerField(help_text="Nodes with an unknown number of GPUs. The sums omit these nodes.")


class UsageSerializer(serializers.Serializer):
    first = serializers.DateField()
    last = serializers.DateField()
    coverage = CoverageSerializer()
    total = UsageAmountSerializer()
    days = UsageLineSerializer(many=True)
    lines = UsageLineSerializer(many=True)
    has_more = serializers.BooleanField(help_text="Whether more lines exist. Increase `offset` to get them.")


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


class UsageReportAsked(Asked):
    limit = serializers.IntegerField(min_value=1, max_value=1000, default=100, help_text="Workloads, most idle first.")


class WorkloadReportSerializer(serializers.Serializer):
    cluster = serializers.CharField(source="line.cluster")
    namespace = serializers.CharField(source="line.namespace", help_text="Blank: no pod had these hours.")
    workload = serializers.CharField(source="line.workload", help_text="Kind and name. Blank: no controller.")
    gpu_hours_reserved = serializers.FloatField(source="reserved", help_text="Used, idle and not measured hours.")
    amount = UsageAmountSerializer(source="line.amount")
    busy_ratio = serializers.FloatField(
        source="activity.busy", allow_null=True, help_text="Mean over its exclusive GPUs, 0 to 1. Null: unknown."
    )
    energy_kwh = serializers.FloatField(
        source="activity.energy_kwh", allow_null=True,
        help_text="Of its exclusive GPUs, in `energy_gpu_hours` alone. Null: not exported.",
    )  # fmt: skip
    energy_gpu_hours = serializers.FloatField(
        source="activity.energy_gpu_hours", help_text="GPU-hours with known power. Others have no energy."
    )
    pattern = serializers.ChoiceField(
        source="advice.pattern", choices=[(pattern.value, pattern.value) for pattern in UsePattern]
    )
    advice = serializers.CharField(source="advice.text", help_text="Blank: no advice.")
    setting = serializers.CharField(source="advice.setting", help_text="The setting that the advice is about.")


class UsageReportSerializer(serializers.Serializer):
    """GPU-hours of the last 7 days. The amounts of `workloads` and `rest` add up to `total`."""

    first = serializers.DateField(source="report.first")
    last = serializers.DateField(source="report.last")
    coverage = CoverageSerializer(source="report.coverage")
    total = UsageAmountSerializer(source="report.total")
    previous = UsageAmountSerializer(source="before", help_text="The 7 days before.")
    workloads = WorkloadReportSerializer(source="lines", many=True)
    rest = UsageAmountSerializer(help_text="Workloads beyond `limit`.")


class WeeklyUsageReport(Edge):
    @extend_schema(parameters=[UsageReportAsked], responses=UsageReportSerializer)
    def get(self, request) -> Response:
        """Returns the last 7 days by workload: reserved, used and idle GPU-hours, cost, energy and advice."""
        asked = UsageReportAsked(data=request.query_params.dict())
        asked.is_valid(raise_exception=True)
        found = weekly_report(self.user, now=timezone.now(), most=asked.validated_data["limit"])
        return Response(UsageReportSerializer(found).data)
