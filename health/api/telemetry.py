"""The telemetry sources of clusters, and the telemetry of a node's GPUs."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django.shortcuts import get_object_or_404
from django.utils import timezone
from drf_spectacular.utils import OpenApiResponse, extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.response import Response

from edges.concurrent_edits import LENGTH, NONE
from edges.rest import Asked, Edge, Listing, RowSerializer
from fleet.api.nodes import OfANode
from fleet.api.serializers import RefSerializer
from fleet.models import Cluster, Node
from health import wake
from health.api.exported_metrics import METRIC_KEYS, NodesCountedSerializer
from health.inbox.telemetry_sources import mark_of, put_source, remove_source
from health.models import SourceState, TelemetrySource
from health.models.telemetry_source import LATE
from health.sources.exported_metrics import Exporting, exporting_of
from health.sources.manual_refresh import ask_now
from health.sources.node_telemetry import DeviceTelemetry, NodeTelemetry, instant, telemetry_of
from health.sources.readings import MetricReading, ReadingState, Standing
from health.sources.secrets import SOURCE_SECRETS
from health.telemetry.metrics import METRICS, missing_metrics
from people.rights import Permission, require, scope_of

ADMINS = "Place of the password or token, never the secret itself. Null: only admins see it."
STATES = [(state, state) for state in (*SourceState.values, LATE)]
READINGS = [(state.value, state.value) for state in ReadingState]


class TelemetrySourceSerializer(RowSerializer):
    """A Prometheus with the series of a cluster's GPU exporters, and the state of its queries."""

    cluster = RefSerializer()
    matchers = serializers.CharField(help_text="Label matchers of the cluster's series. Blank: all series.")
    user = serializers.CharField(allow_null=True, help_text="For basic authentication. Null: only admins see it.")
    secret_from = serializers.CharField(allow_null=True, help_text=ADMINS)
    ca_file = serializers.CharField(allow_null=True, help_text="Path of the CA file. Null: only admins see it.")
    mark = serializers.SerializerMethodField(
        help_text="Version of the settings; send it as `was` of PUT. Null: only admins see it."
    )
    state = serializers.SerializerMethodField(help_text="late: the source was not queried recently.")
    since = serializers.DateTimeField(source="state_since")
    message = serializers.CharField(help_text="Why the source is silent, and what helps. Blank: it is not silent.")
    notes = serializers.ListField(child=serializers.CharField(), help_text="Anomalies in the source's answers.")
    answered_at = serializers.DateTimeField(allow_null=True, help_text="Time of the last answer. Null: never.")
    age_s = serializers.SerializerMethodField(help_text="Seconds since the last answer. Null: never.")
    devices = serializers.IntegerField(help_text="Number of GPUs and MIG slices in the last answer.")
    exported = serializers.ListField(
        child=serializers.ChoiceField(choices=METRIC_KEYS), help_text="Metrics that any exporter has; see `nodes`."
    )
    nodes = serializers.SerializerMethodField(help_text="Number of nodes that export each metric. Null: unknown.")
    not_exported = serializers.SerializerMethodField(help_text="Default metrics that the source does not have.")
    to_be_switched_on = serializers.SerializerMethodField(
        help_text="Metrics that must be enabled in the exporter and that the source does not have."
    )

    class Meta:
        model = TelemetrySource
        fields = (
            "id", "cluster", "url", "matchers", "user", "secret_from", "ca_file", "is_on", "mark", "state", "since",
            "message", "notes", "answered_at", "age_s", "took_ms", "devices", "exported", "nodes", "not_exported",
            "to_be_switched_on", "added_by", "added_at", "changed_at",
        )  # fmt: skip

    def to_representation(self, source: TelemetrySource) -> dict[str, Any]:
        said = super().to_representation(source)
        if not self.context["administers"].covers_cluster(source.cluster_id):
            said |= dict.fromkeys(("user", "secret_from", "ca_file", "mark"))
        return said

    @extend_schema_field(serializers.CharField(allow_null=True))
    def get_mark(self, source: TelemetrySource) -> str:
        return mark_of(source)

    @extend_schema_field(serializers.ChoiceField(choices=STATES))
    def get_state(self, source: TelemetrySource) -> str:
        return source.state_at(self.context["now"])

    @extend_schema_field(serializers.FloatField(allow_null=True, min_value=0))
    def get_age_s(self, source: TelemetrySource) -> float | None:
        at = source.answered_at
        return None if at is None else max(0.0, (self.context["now"] - at).total_seconds())

    @extend_schema_field(serializers.DictField(child=NodesCountedSerializer(), allow_null=True))
    def get_nodes(self, source: TelemetrySource) -> dict[str, dict[str, int]] | None:
        counted: Exporting | None = self.context["exporting"].get(source.cluster_id)
        return {key: nodes._asdict() for key, nodes in counted.by_metric().items()} if counted else None

    @extend_schema_field(serializers.ListField(child=serializers.ChoiceField(choices=METRIC_KEYS)))
    def get_not_exported(self, source: TelemetrySource) -> list[str]:
        return _missing_metrics(source)[0]

    @extend_schema_field(serializers.ListField(child=serializers.ChoiceField(choices=METRIC_KEYS)))
    def get_to_be_switched_on(self, source: TelemetrySource) -> list[str]:
        return _missing_metrics(source)[1]


def _missing_metrics(source: TelemetrySource) -> tuple[list[str], list[str]]:
    """Returns missing metrics. For a source that never answered they are unknown."""
    if source.answered_at is None:
        return [], []
    usual, others = missing_metrics(source.exported)
    return [metric.key for metric in usual], [metric.key for metric in others]


class TelemetrySourcePut(Asked):
    url = serializers.CharField(max_length=300, help_text="For example https://prometheus.example.org, with its path.")
    matchers = serializers.CharField(
        max_length=500, required=False, default="", allow_blank=True,
        help_text='Label matchers, if the server has several clusters: cluster="eu-1".',
    )  # fmt: skip
    user = serializers.CharField(
        max_length=150, required=False, default="", allow_blank=True, help_text="User name for basic authentication."
    )
    secret_from = serializers.CharField(
        max_length=300, required=False, default="", allow_blank=True,
        help_text=f"Place of the password or token: {SOURCE_SECRETS.places}. Never the secret itself. The operator of "
        "Quarterdeck lists the clusters that may use the secret in "
        f"{SOURCE_SECRETS.prefix}NAME{SOURCE_SECRETS.of_variable} or NAME{SOURCE_SECRETS.of_file}.",
    )  # fmt: skip
    ca_file = serializers.CharField(
        max_length=300, required=False, default="", allow_blank=True,
        help_text="File with the CA certificate of the server, in the folder QUARTERDECK_SECRETS_DIR. At most 1 MiB.",
    )  # fmt: skip
    is_on = serializers.BooleanField(required=False, default=True)
    was = serializers.CharField(
        max_length=LENGTH, required=False, default="", allow_blank=True,
        help_text=f"The `mark` that you read, or “{NONE}” for a new source. 409 if it has changed. Blank: no check.",
    )  # fmt: skip


class TelemetrySourceList(Listing):
    """Lists the telemetry sources of clusters that the caller sees whole."""

    serializer_class = TelemetrySourceSerializer
    shown: Sequence[TelemetrySource] = ()

    def get_queryset(self):
        return TelemetrySource.objects.visible_to(self.user).select_related("cluster")

    def see(self, rows: Sequence[TelemetrySource]) -> Sequence[TelemetrySource]:
        self.shown = rows
        return rows

    def get_serializer_context(self) -> dict[str, Any]:
        return {**super().get_serializer_context(), **context_of(self), **_exporting(self.shown)}


def context_of(edge: Edge) -> dict[str, Any]:
    return {"now": timezone.now(), "administers": scope_of(edge.user, Permission.ADMINISTER)}


def _exporting(sources: Iterable[TelemetrySource]) -> dict[str, Any]:
    """Returns the exported metrics of sources that answered, with one query.

    Seeing a source implies seeing its cluster whole.
    """
    answered = {
        source.cluster_id: Standing(has_source=True, exported=frozenset(source.exported))
        for source in sources
        if source.answered_at
    }
    return {"exporting": exporting_of(answered, Node.objects.all())}


class OfASource(Edge):
    def cluster(self, cluster_id: int, permission: Permission) -> Cluster:
        """Returns the cluster if the caller has this permission there."""
        row = self.load(Cluster.objects.visible_to(self.user), cluster_id)
        require(self.user, permission, cluster_id=row.pk, where=f"cluster {row.name}")
        return row

    def source(self, cluster_id: int) -> TelemetrySource:
        visible = TelemetrySource.objects.visible_to(self.user).select_related("cluster")
        return get_object_or_404(visible, cluster__pk=cluster_id)

    def shown(self, source: TelemetrySource) -> Response:
        return Response(TelemetrySourceSerializer(source, context=context_of(self) | _exporting([source])).data)


class TelemetrySourceDetail(OfASource):
    mark_field = "mark"

    @extend_schema(responses=TelemetrySourceSerializer)
    def get(self, request, cluster_id: int) -> Response:
        return self.shown(self.source(cluster_id))

    @extend_schema(request=TelemetrySourcePut, responses=TelemetrySourceSerializer)
    def put(self, request, cluster_id: int) -> Response:
        """Adds or changes the source. A worker queries it at once. The change is recorded as a decision."""
        cluster = self.cluster(cluster_id, Permission.ADMINISTER)
        asked = self.read(TelemetrySourcePut)
        source = put_source(cluster, actor=self.user.get_username(), now=timezone.now(), **asked)
        wake.wake_telemetry_of(cluster.pk)
        return self.shown(source)

    @extend_schema(responses={204: OpenApiResponse(description="The source is removed, with its data.")})
    def delete(self, request, cluster_id: int) -> Response:
        self.cluster(cluster_id, Permission.ADMINISTER)
        row = self.source(cluster_id)
        remove_source(row, actor=self.user.get_username(), now=timezone.now(), was=self.was())
        return Response(status=204)


class TelemetryAttemptList(OfASource):
    @extend_schema(request=None, responses={204: OpenApiResponse(description="A worker queries the source.")})
    def post(self, request, cluster_id: int) -> Response:
        """Queries a source at once, before it is due."""
        self.cluster(cluster_id, Permission.STOP)
        ask_now(self.source(cluster_id), now=timezone.now())
        return Response(status=204)


class MetricReadingSerializer(serializers.Serializer):
    """One metric of one device. Zero is a value; null means no value."""

    state = serializers.ChoiceField(choices=READINGS)
    value = serializers.FloatField(allow_null=True, help_text="In its unit. Null: no value; `state` has the reason.")
    unit = serializers.CharField(help_text="Unit of the value. Blank: a number, or a ratio from 0 to 1.")
    sampled_at = serializers.DateTimeField(
        allow_null=True, help_text="Time of the sample by the exporter. Null: no value."
    )
    since = serializers.DateTimeField(
        allow_null=True,
        help_text=(
            "Time since which the value is stale or the source is silent. Null: neither, or the time is unknown."
        ),
    )


class DeviceTelemetrySerializer(serializers.Serializer):
    """A GPU, or a slice of one."""

    index = serializers.IntegerField(allow_null=True, help_text="Index of the GPU. Null: unknown.")
    uuid = serializers.SerializerMethodField(help_text="UUID of the GPU, also for a MIG slice. Null: not reported yet.")
    gi_id = serializers.CharField(help_text="GPU instance of the MIG slice. Blank: whole GPU.")
    profile = serializers.CharField(help_text="Profile of the MIG slice. Blank: the whole GPU.")
    product = serializers.CharField()
    serial = serializers.CharField(help_text="Serial number of the board. Blank: not exported.")
    is_mig = serializers.BooleanField(help_text="True: a MIG slice, or a GPU that is partitioned into MIG slices.")
    is_exported = serializers.BooleanField(help_text="True: the source has reported this device at least once.")
    xid_words = serializers.CharField(help_text="The exporter's text for the last Xid. Blank: no text, or no Xid.")
    metrics = serializers.SerializerMethodField(help_text="Readings of all metrics, by metric key.")

    @extend_schema_field(serializers.CharField(allow_null=True))
    def get_uuid(self, device: DeviceTelemetry) -> str | None:
        return device.uuid or None

    @extend_schema_field(serializers.DictField(child=MetricReadingSerializer()))
    def get_metrics(self, device: DeviceTelemetry) -> Mapping[str, dict[str, Any]]:
        return {key: _reading_as_dict(key, reading) for key, reading in device.metrics.items()}


def _reading_as_dict(key: str, reading: MetricReading) -> dict[str, Any]:
    return {
        "state": reading.state.value,
        "value": reading.value,
        "unit": METRICS[key].unit,
        "sampled_at": instant(reading.sampled_at),
        "since": instant(reading.since),
    }


class NodeSourceSerializer(serializers.Serializer):
    state = serializers.ChoiceField(choices=STATES)
    since = serializers.DateTimeField(source="state_since")
    answered_at = serializers.DateTimeField(allow_null=True, help_text="Time of the last answer. Null: never.")


class NodeTelemetrySerializer(serializers.Serializer):
    source = NodeSourceSerializer(  # type: ignore[assignment]
        allow_null=True, help_text="Telemetry source of the node's cluster. Null: none."
    )
    trouble = serializers.CharField(help_text="Why the stored telemetry cannot be read. Blank: it can be read.")
    devices = DeviceTelemetrySerializer(many=True)


class NodeTelemetryDetail(OfANode):
    """Returns the newest values of each GPU and slice of a node with their times, or why there is none."""

    @extend_schema(responses=NodeTelemetrySerializer)
    def get(self, request, node_id: int) -> Response:
        known: NodeTelemetry = telemetry_of(self.node(node_id), now=timezone.now())
        return Response(NodeTelemetrySerializer(known).data)
