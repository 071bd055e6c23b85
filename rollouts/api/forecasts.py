"""The forecast of a plan beside its outcome."""

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import NotFound
from rest_framework.response import Response

from rollouts.api.base import PlanEdge
from rollouts.commands.forecast_rows import ROWS
from rollouts.commands.preview import forecast_on_page

NO_FORECAST = "This plan has no forecast: it was discarded, or started by an earlier version of Quarterdeck."


class ForecastRowSerializer(serializers.Serializer):
    key = serializers.CharField(help_text=f"One of {', '.join(ROWS)}.")
    label = serializers.CharField(source="kind.label")  # type: ignore[assignment]
    unit = serializers.CharField(source="kind.unit", help_text="`s`, `GPU-hours`, or blank for a number.")
    forecast = serializers.FloatField(allow_null=True, help_text="Null: unknown.")
    slow = serializers.FloatField(
        allow_null=True, help_text="Forecast with the 90th percentile of each node's time. Null: the same, or unknown."
    )
    outcome = serializers.FloatField(allow_null=True, help_text="Outcome so far. Null: not measured.")


class CohortRowSerializer(serializers.Serializer):
    """The time of the nodes with the same GPU, kernel and OS image."""

    title = serializers.CharField()
    nodes = serializers.IntegerField()
    typical_s = serializers.FloatField(help_text="Median of past plans, or a default.")
    slow_s = serializers.FloatField(help_text="90th percentile of past plans, or a default.")
    measured = serializers.IntegerField(help_text="Nodes of past plans that were measured. 0: a default.")
    source = serializers.CharField()  # type: ignore[assignment]
    outcome_s = serializers.FloatField(allow_null=True, help_text="Median of changed nodes. Null: none changed yet.")


class PlanForecastSerializer(serializers.Serializer):
    """The forecast of a draft now, or the forecast that was sealed at the plan's start with what came of it."""

    at = serializers.DateTimeField(help_text="Time of the forecast.")
    is_sealed = serializers.BooleanField(help_text="False: the forecast of a draft, which changes with the cluster.")
    mode = serializers.CharField(help_text="`compiled` or `precompiled` driver.")
    ends_at = serializers.DateTimeField(
        allow_null=True,
        help_text="Expected end, if the plan starts then. Null: a maintenance window never opens again.",
    )
    slow_ends_at = serializers.DateTimeField(allow_null=True, help_text="The same with each node's 90th percentile.")
    ended_at = serializers.DateTimeField(allow_null=True, help_text="Null: the plan has not ended.")
    rows = ForecastRowSerializer(many=True)
    cohorts = CohortRowSerializer(many=True)
    headroom = serializers.ListField(
        child=serializers.CharField(), help_text="Stages whose first wave has GPU pods without room elsewhere."
    )


class PlanForecast(PlanEdge):
    @extend_schema(responses=PlanForecastSerializer)
    def get(self, request, plan_id: int) -> Response:
        """Returns the forecast of a draft now, or a started plan's forecast beside what came of it."""
        found = forecast_on_page(self.plan(plan_id), now=timezone.now())
        if found is None:
            raise NotFound(NO_FORECAST)
        return Response(PlanForecastSerializer(found).data)
