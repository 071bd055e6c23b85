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
    name = serializers.CharField(help_text="Name of the device, such as `GPU 3`.")
    index = serializers.IntegerField(source="device.index", allow_null=True)
    uuid = serializers.CharField(source="device.uuid")
    gi_id = serializers.CharField(source="device.gi_id", help_text="GPU instance of the MIG slice. Blank: whole GPU.")
    metric = serializers.ChoiceField(choices=METRIC_KEYS, help_text="The plotted metric.")
    values = serializers.ListField(
        child=serializers.FloatField(allow_null=True), help_text="One value for each entry of `times`. Null: no sample."
    )
    is_subject = serializers.BooleanField(
        help_text="True: the plots are about this device. False: the device is shown for comparison."
    )


class PlotLimitSerializer(serializers.Serializer):
    severity = serializers.ChoiceField(choices=SEVERITIES)
    value = serializers.FloatField(help_text="The value from which the rule reports this severity, in the plot's unit.")


class PlotSerializer(serializers.Serializer):
    key = serializers.ChoiceField(choices=METRIC_KEYS)
    title = serializers.CharField()
    unit = serializers.CharField(
        help_text="Blank: a number, or a ratio from 0 to 1. `1 = yes`: true, or for `throttled_…` the counter grew "
        "since the last step. `10 = warning, 20 = failure`: for `dcgm_health`, where 0 is healthy."
    )
    lines = PlotLineSerializer(many=True)
    left_out = serializers.IntegerField(help_text="Number of further devices with samples that this plot leaves out.")
    limits = PlotLimitSerializer(many=True, help_text="Limits of the rule at its evaluation, or now. Empty: none.")


class PlotMarkSerializer(serializers.Serializer):
    at = serializers.DateTimeField()
    kind = serializers.CharField(help_text="`xid`, `finding`, `plan`, or the kind of an event of the node.")
    sentence = serializers.CharField()
    href = serializers.CharField(help_text="Page of the object that caused this event. Blank: none.")


class TelemetryHistorySerializer(serializers.Serializer):
    window = serializers.ChoiceField(
        choices=[(key, key) for key in (*WINDOWS, WINDOW)],
        help_text="`around`: the time around the start of a finding.",
    )
    drawn_from = serializers.ChoiceField(
        choices=[(each.value, each.value) for each in PlotSource],
        help_text="Source of the plots. `exporters`: no Prometheus is enabled, and exporters are queried directly. "
        "Some of their metrics are stored for 24 h at one-minute steps.",
    )
    step_s = serializers.FloatField(source="asked.step_s")
    times = serializers.ListField(child=serializers.FloatField(), help_text="Times in seconds since the epoch.")
    trouble = serializers.CharField(help_text="Why there are no plots. Blank: plots exist, or no metric has samples.")
    plots = PlotSerializer(many=True, help_text="Plots with at least one line.")
    not_drawn = serializers.ListField(
        child=serializers.CharField(), help_text="Titles of exported metrics without a sample in this period."
    )
    not_exported = serializers.ListField(
        child=serializers.CharField(), help_text="Titles of metrics that are not exported."
    )
    not_kept = serializers.ListField(
        child=serializers.CharField(), help_text="Titles of exported metrics that only a Prometheus stores."
    )
    silent_since = serializers.DateTimeField(
        allow_null=True, help_text="Start of the source's silence. Null: not silent."
    )
    add_source_href = serializers.CharField(
        help_text="Page to add a Prometheus. Blank: a Prometheus is enabled, or you may not see the whole cluster."
    )
    marks = PlotMarkSerializer(many=True, help_text="Xids, events of the node and actions of plans; oldest first.")
    marks_left_out = serializers.IntegerField()


class SinceAsked(Asked):
    since = serializers.IntegerField(
        min_value=0, max_value=LATEST_S, required=False, default=0,
        help_text="Seconds since the epoch, for incremental updates. Only later values and events are returned, but "
        "at least the last value.",
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
