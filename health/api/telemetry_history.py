"""The telemetry of GPUs over the last hours as plots with events, with the same data as the pages."""

from typing import Any

from django.urls import reverse
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from edges.rest import Asked
from fleet.api.nodes import OfAGpu, OfANode
from fleet.models import Node
from health.api.telemetry import METRIC_KEYS
from health.inbox.plots import WINDOW, plots_of_gpu, with_plans
from health.models.finding import SEVERITIES
from health.sources.history import WINDOWS, PlotSource, TelemetryHistory, history_of
from people.models import User
from people.rights import Permission, scope_of

LATEST_S = 2**53  # a script's numbers are whole up to there


class PlotLineSerializer(serializers.Serializer):
    name = serializers.CharField(help_text="As `GPU 3`.")
    index = serializers.IntegerField(source="device.index", allow_null=True)
    uuid = serializers.CharField(source="device.uuid")
    gi_id = serializers.CharField(source="device.gi_id", help_text="Of the MIG slice; blank: the whole board.")
    metric = serializers.ChoiceField(choices=METRIC_KEYS, help_text="The one that is drawn.")
    values = serializers.ListField(
        child=serializers.FloatField(allow_null=True), help_text="One for each of `times`. Null: no sample."
    )
    is_subject = serializers.BooleanField(help_text="What the plots are about: other lines are beside it.")


class PlotLimitSerializer(serializers.Serializer):
    severity = serializers.ChoiceField(choices=SEVERITIES)
    value = serializers.FloatField(help_text="In the plot's unit: from there on the rule calls it so.")


class PlotSerializer(serializers.Serializer):
    key = serializers.ChoiceField(choices=METRIC_KEYS)
    title = serializers.CharField()
    unit = serializers.CharField(
        help_text="Blank: a number, or a ratio from 0 to 1. `1 = yes`: it is, and of `throttled_…` it was, since the "
        "step before. `10 = warning, 20 = failure`, of `dcgm_health`: 0 is well."
    )
    lines = PlotLineSerializer(many=True)
    left_out = serializers.IntegerField(help_text="Devices with samples, beyond those that have a line here.")
    limits = PlotLimitSerializer(
        many=True, help_text="Of the rule at its evaluation, or now; empty: none that a line can show."
    )


class PlotMarkSerializer(serializers.Serializer):
    at = serializers.DateTimeField()
    kind = serializers.CharField(help_text="`xid`, `finding`, `plan`, or the kind of an event of the node.")
    sentence = serializers.CharField()
    href = serializers.CharField(help_text="The page of what did it; blank: it has none.")


class TelemetryHistorySerializer(serializers.Serializer):
    window = serializers.ChoiceField(
        choices=[(key, key) for key in (*WINDOWS, WINDOW)], help_text="`around`: of when a finding began."
    )
    drawn_from = serializers.ChoiceField(
        choices=[(each.value, each.value) for each in PlotSource],
        help_text="`exporters`: no Prometheus is on, and exporters are asked one by one. Some of their metrics are "
        "kept, at one minute, for 24 h.",
    )
    step_s = serializers.FloatField(source="asked.step_s")
    times = serializers.ListField(child=serializers.FloatField(), help_text="Seconds since the epoch.")
    trouble = serializers.CharField(help_text="Why there are no plots; blank: there are, or nothing has samples.")
    plots = PlotSerializer(many=True, help_text="Those that have a line.")
    not_drawn = serializers.ListField(
        child=serializers.CharField(), help_text="Titles of those that are exported, and have no sample in this time."
    )
    not_exported = serializers.ListField(
        child=serializers.CharField(), help_text="Titles of those of which the source has no series."
    )
    not_kept = serializers.ListField(
        child=serializers.CharField(), help_text="Titles of those that are exported, and that only a Prometheus keeps."
    )
    silent_since = serializers.DateTimeField(allow_null=True, help_text="Of the source. Null: it is not silent.")
    add_source_href = serializers.CharField(
        help_text="The page where a Prometheus can be added. Blank: one is on, or you do not see the whole cluster."
    )
    marks = PlotMarkSerializer(many=True, help_text="Xids, what the timeline has, and plans; oldest first.")
    marks_left_out = serializers.IntegerField()


class SinceAsked(Asked):
    since = serializers.IntegerField(
        min_value=0, max_value=LATEST_S, required=False, default=0,
        help_text="Seconds since the epoch: only the instants from then on, and what happened since; the last instant"
        " at least. For who has the earlier ones.",
    )  # fmt: skip


class HistoryAsked(SinceAsked):
    window = serializers.ChoiceField(choices=[(key, key) for key in WINDOWS], required=False, default="1h")


class NodeTelemetryHistory(OfANode):
    """Returns the telemetry of each GPU and slice of a node over the last hours, with events.

    It comes from the cluster's Prometheus, or without one from its exporters at one-minute steps.
    """

    @extend_schema(parameters=[HistoryAsked], responses=TelemetryHistorySerializer)
    def get(self, request, node_id: int) -> Response:
        node = self.node(node_id)
        told = history_of(node, **asked_in(request, HistoryAsked), now=timezone.now())
        return Response(visible_history(self.user, node, told))


class GpuTelemetryHistory(OfAGpu):
    """Returns the telemetry of one GPU and its slices over the last hours, with events and the limits in force."""

    @extend_schema(parameters=[HistoryAsked], responses=TelemetryHistorySerializer)
    def get(self, request, node_id: int, index: int) -> Response:
        gpu = self.named_gpu(node_id, index)
        told = plots_of_gpu(gpu, **asked_in(request, HistoryAsked), now=timezone.now())
        return Response(visible_history(self.user, gpu.node, told))


def visible_history(user: User, node: Node, told: TelemetryHistory) -> dict[str, Any]:
    """Returns as much as the user may see of the source, with the actions of visible plans on the node."""
    sees_source = scope_of(user, Permission.SEE).covers_cluster(node.cluster_id)
    marked = with_plans(told if sees_source else told.without_words(), node, user)
    page = f"{reverse('cluster', args=[node.cluster_id])}#cluster-telemetry"
    href = page if sees_source and told.drawn_from is PlotSource.EXPORTERS else ""
    return dict(
        TelemetryHistorySerializer(
            {**vars(marked), "trouble": marked.trouble, "times": marked.times, "add_source_href": href}
        ).data
    )


def asked_in(request, form: type[Asked]) -> dict[str, Any]:
    """Returns the requested options by form field."""
    asked = form(data=request.query_params.dict())
    asked.is_valid(raise_exception=True)
    return dict(asked.validated_data)
