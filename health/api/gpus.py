"""The GPU table, with the same data as its page."""

from typing import Any, ClassVar

from django.http import StreamingHttpResponse
from django.utils import timezone
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.renderers import BaseRenderer, JSONRenderer
from rest_framework.response import Response

from edges.pagination import LARGEST_OFFSET, Pages
from edges.rest import Asked, Edge
from fleet.allocation.allocations import AllocationSource
from fleet.api.serializers import RefSerializer
from fleet.states.node import STATE_KEYS
from health.api.telemetry import METRIC_KEYS, MetricReadingSerializer
from health.gpus.columns import COLUMNS, ORDERS, WORST_FIRST
from health.gpus.files import TooLong, csv_of
from health.gpus.gpu_filter import LONGEST, OF_A_METRIC, READINGS, SEVERITIES, GpuFilter, number
from health.gpus.selection import TooWide
from health.gpus.serializer import gpu_data
from health.gpus.table import GpuTable, table_of
from health.rules.base import Severity
from people.rights import Permission, require_somewhere

EVERYWHERE = {"format"}


class GpusAsked(Asked):
    q = serializers.CharField(max_length=LONGEST, required=False, help_text="Part of a node's name or of a GPU's UUID.")
    cluster = serializers.CharField(max_length=LONGEST, required=False, help_text="Name of the cluster.")
    pool = serializers.CharField(
        max_length=LONGEST, required=False, help_text="Name of the pool; `cluster/pool` where several clusters have it."
    )
    product = serializers.CharField(max_length=LONGEST, required=False, help_text="Name without -SHARED and -MIG-….")
    namespace = serializers.CharField(max_length=LONGEST, required=False, help_text="Namespace of a pod on the GPU.")
    state = serializers.ChoiceField(
        choices=[(key, key) for key in STATE_KEYS], required=False, help_text="State of its node."
    )
    severity = serializers.ChoiceField(
        choices=[(each, each) for each in SEVERITIES], required=False, help_text="Severity of its worst open finding."
    )
    faults = serializers.ChoiceField(
        choices=[("true", "true"), ("false", "false")], required=False,
        help_text="true: only GPUs with an open finding of severity above `note`, about the GPU or its node.",
    )  # fmt: skip
    metric = serializers.ChoiceField(
        choices=METRIC_KEYS, required=False,
        help_text="Only GPUs with a last value of this metric above 0. `reading` and `at_least` change this condition.",
    )  # fmt: skip
    reading = serializers.ChoiceField(
        choices=[(each, each) for each in map(str, READINGS)], required=False,
        help_text="State of the `metric`'s reading, or `zero`.",
    )  # fmt: skip
    at_least = serializers.CharField(max_length=30, required=False, help_text="Least value, in the unit of `metric`.")
    column = serializers.MultipleChoiceField(
        choices=[(key, column.title) for key, column in COLUMNS.items()], required=False,
        help_text="Column of the page's table; may be repeated. Its metrics are added to `metrics`.",
    )  # fmt: skip
    ordering = serializers.ChoiceField(
        choices=[(each, each) for each in ORDERS], required=False, default=WORST_FIRST,
        help_text="Sort order. Unknown values are last in both directions.",
    )  # fmt: skip

    def validate_at_least(self, text: str) -> str:
        if number(text) is None:
            raise serializers.ValidationError("Write a number with the digits 0 to 9, as 80 or 0.5.")
        return text

    def validate(self, asked: dict[str, Any]) -> dict[str, Any]:
        for name in OF_A_METRIC:
            if asked.get(name) and not asked.get("metric"):
                raise serializers.ValidationError({name: "Name the metric too."})
        return asked


class GpuHealthAsked(GpusAsked):
    limit = serializers.IntegerField(
        min_value=1, max_value=Pages.max_limit, required=False, default=Pages.default_limit
    )
    offset = serializers.IntegerField(min_value=0, max_value=LARGEST_OFFSET, required=False, default=0)


class GpuAllocationSerializer(serializers.Serializer):
    namespace = serializers.CharField()
    name = serializers.CharField()
    profile = serializers.CharField(help_text="Profile of the pod's MIG slice. Blank: the pod uses the whole GPU.")
    reported_by = serializers.ChoiceField(choices=[(source.value, source.value) for source in AllocationSource])
    is_current = serializers.BooleanField(help_text="False: the pod is no longer observed there.")


class GpuFindingSerializer(serializers.Serializer):
    id = serializers.IntegerField()
    rule = serializers.CharField()
    title = serializers.CharField()
    severity = serializers.ChoiceField(choices=[(each.value, each.value) for each in Severity])
    is_of_node = serializers.BooleanField(help_text="True: the finding is about the node as a whole.")


class GpuHealthSerializer(serializers.Serializer):
    """A GPU with its findings, allocation and telemetry."""

    id = serializers.IntegerField()
    cluster = RefSerializer()
    node = RefSerializer()
    index = serializers.IntegerField()
    uuid = serializers.CharField(allow_null=True, help_text="Null: no source has reported it yet.")
    product = serializers.CharField()
    pools = serializers.ListField(child=serializers.CharField())
    use = serializers.CharField(help_text="`whole`, or how the GPU is shared: `3 MIG slices`, `time-slicing ×4`.")
    allocations = GpuAllocationSerializer(
        many=True,
        allow_null=True,
        help_text="Pods that use the GPU. Null: pods were never read, or the allocation of this GPU is unknown.",
    )
    may_have_more = serializers.BooleanField(help_text="The node shares its GPUs, and the GPU of some pods is unknown.")
    finding = GpuFindingSerializer(allow_null=True, help_text="Worst open finding of the GPU or its node. Null: none.")
    driver_version = serializers.CharField(help_text="Driver version of the node. Blank: never reported.")
    driver_unknown_since = serializers.DateTimeField(
        allow_null=True,
        help_text=(
            "Start of the absence of the version label; `driver_version` has its last value. Null: the label exists."
        ),
    )
    is_seen = serializers.BooleanField(help_text="False: the cluster is not live. The values are the last known ones.")
    is_exported = serializers.BooleanField(help_text="The telemetry source has reported this GPU at least once.")
    metrics = serializers.DictField(
        child=MetricReadingSerializer(),
        help_text="By metric key: default metrics, and those of requested columns, filter and order.",
    )
    utilisation_by = serializers.ChoiceField(choices=METRIC_KEYS, help_text="Metric that gives the utilisation.")
    xid_words = serializers.CharField(help_text="The exporter's text for the last Xid. Blank: no text, or no Xid.")
    sampled_at = serializers.DateTimeField(allow_null=True, help_text="Newest sample in `metrics`. Null: no sample.")


class GpuHealthPageSerializer(serializers.Serializer):
    count = serializers.IntegerField()
    next = serializers.URLField(allow_null=True)
    previous = serializers.URLField(allow_null=True)
    results = GpuHealthSerializer(many=True)
    without_value = serializers.IntegerField(
        help_text="Number of GPUs that match but have no value of `metric`. They are not in `results`."
    )


class CsvRenderer(BaseRenderer):
    """Renders refusals only. The file itself is streamed."""

    media_type = "text/csv"
    format = "csv"

    def render(self, data: Any, accepted_media_type: str | None = None, renderer_context: Any = None) -> bytes:
        return JSONRenderer().render(data, None, renderer_context)


class GpuTableEdge(Edge):
    def asked(self, request, body: type[GpusAsked]) -> dict[str, Any]:
        query = request.query_params
        given = {name: query.getlist(name) if name == "column" else query[name] for name in query.keys() - EVERYWHERE}
        asked = body(data=given)
        asked.is_valid(raise_exception=True)
        said = dict(asked.validated_data)
        columns = said.pop("column", ())
        return {
            **said,
            "faults": "1" if said.get("faults") == "true" else "",
            "columns": tuple(key for key in COLUMNS if key in columns),
        }

    def table(self, wanted: dict[str, Any], *, stop: int | None = None) -> GpuTable:
        try:
            return table_of(self.user, GpuFilter(**wanted), now=timezone.now(), stop=stop)
        except TooWide as refusal:
            raise serializers.ValidationError({"namespace": str(refusal)}) from refusal


class GpuHealthList(GpuTableEdge):
    """Lists every GPU that the caller sees with its findings, allocation and telemetry, worst first."""

    @extend_schema(parameters=[GpuHealthAsked], responses=GpuHealthPageSerializer)
    def get(self, request) -> Response:
        said = self.asked(request, GpuHealthAsked)
        limit, offset = said.pop("limit"), said.pop("offset")
        table = self.table(said, stop=offset + limit)
        page = Pages()
        page.request, page.limit, page.offset, page.count = request, limit, offset, len(table)
        # In the form of the serializer, which exists for the schema only.
        response = page.get_paginated_response([gpu_data(seen) for seen in table.rows(offset, offset + limit)])
        response.data["without_value"] = table.without_value
        return response


class GpuHealthFile(GpuTableEdge):
    renderer_classes: ClassVar[list[type[BaseRenderer]]] = [CsvRenderer, JSONRenderer]  # type: ignore[misc]

    @extend_schema(parameters=[GpusAsked], responses={(200, "text/csv"): OpenApiTypes.STR})
    def get(self, request) -> StreamingHttpResponse:
        """Returns all matching GPUs as a CSV file. Beside each value is its state, as on the page.

        More than 50,000 GPUs are refused. A cell that a spreadsheet would treat as a formula begins with an apostrophe.
        """
        require_somewhere(self.user, Permission.SEE)  # an empty file would read as if there were no GPU
        try:
            return csv_of(self.table(self.asked(request, GpusAsked)))
        except TooLong as refusal:
            raise serializers.ValidationError(str(refusal)) from refusal
