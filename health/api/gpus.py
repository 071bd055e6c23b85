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
from health.gpus.serializer import written
from health.gpus.table import GpuTable, table_of
from health.rules.base import Severity
from people.rights import Permission, require_somewhere

EVERYWHERE = {"format"}


class GpusAsked(Asked):
    q = serializers.CharField(max_length=LONGEST, required=False, help_text="A part of a node's name or of a UUID.")
    cluster = serializers.CharField(max_length=LONGEST, required=False, help_text="Name of the cluster.")
    pool = serializers.CharField(
        max_length=LONGEST, required=False, help_text="Name of the pool; `cluster/pool` where several clusters have it."
    )
    product = serializers.CharField(max_length=LONGEST, required=False, help_text="Without -SHARED and -MIG-….")
    namespace = serializers.CharField(max_length=LONGEST, required=False, help_text="Of a pod that has it.")
    state = serializers.ChoiceField(
        choices=[(key, key) for key in STATE_KEYS], required=False, help_text="Of its node."
    )
    severity = serializers.ChoiceField(
        choices=[(each, each) for each in SEVERITIES], required=False, help_text="Of its worst open finding."
    )
    faults = serializers.ChoiceField(
        choices=[("true", "true"), ("false", "false")], required=False,
        help_text="true: only those with an open finding, of their own or of their node, that is no mere note.",
    )  # fmt: skip
    metric = serializers.ChoiceField(
        choices=METRIC_KEYS, required=False,
        help_text="Only those of which it is more than 0, now or before, unless `reading` or `at_least` say what else.",
    )  # fmt: skip
    reading = serializers.ChoiceField(
        choices=[(each, each) for each in map(str, READINGS)], required=False,
        help_text="How it stands with the `metric`: zero, or the state of its reading.",
    )  # fmt: skip
    at_least = serializers.CharField(max_length=30, required=False, help_text="A number, in the unit of the `metric`.")
    column = serializers.MultipleChoiceField(
        choices=[(key, column.title) for key, column in COLUMNS.items()], required=False,
        help_text="Of the page’s table; may be repeated. `metrics` has what it shows beside the usual ones.",
    )  # fmt: skip
    ordering = serializers.ChoiceField(
        choices=[(each, each) for each in ORDERS], required=False, default=WORST_FIRST,
        help_text="What is not known comes last, whichever way it is sorted.",
    )  # fmt: skip

    def validate_at_least(self, text: str) -> str:
        if number(text) is None:
            raise serializers.ValidationError("Write a number with the digits 0 to 9, as 80 or 0.5.")
        return text

    def validate(self, asked: dict[str, Any]) -> dict[str, Any]:
        for name in OF_A_METRIC:
            if asked.get(name) and not asked.get("metric"):
                raise serializers.ValidationError({name: "Of which metric? Name it, too."})
        return asked


class GpuHealthAsked(GpusAsked):
    limit = serializers.IntegerField(
        min_value=1, max_value=Pages.max_limit, required=False, default=Pages.default_limit
    )
    offset = serializers.IntegerField(min_value=0, max_value=LARGEST_OFFSET, required=False, default=0)


class GpuAllocationSerializer(serializers.Serializer):
    namespace = serializers.CharField()
    name = serializers.CharField()
    profile = serializers.CharField(help_text="Of its slice. Blank: it is on the whole GPU.")
    reported_by = serializers.ChoiceField(choices=[(source.value, source.value) for source in AllocationSource])
    is_current = serializers.BooleanField(help_text="False: it was last seen there a while ago.")


class GpuFindingSerializer(serializers.Serializer):
    id = serializers.IntegerField()
    rule = serializers.CharField()
    title = serializers.CharField()
    severity = serializers.ChoiceField(choices=[(each.value, each.value) for each in Severity])
    is_of_node = serializers.BooleanField(help_text="It is about the node as a whole.")


class GpuHealthSerializer(serializers.Serializer):
    """A GPU with its findings, allocation and telemetry."""

    id = serializers.IntegerField()
    cluster = RefSerializer()
    node = RefSerializer()
    index = serializers.IntegerField()
    uuid = serializers.CharField(allow_null=True, help_text="Null: nothing has named it yet.")
    product = serializers.CharField()
    pools = serializers.ListField(child=serializers.CharField())
    use = serializers.CharField(help_text="`whole`, or how it is cut or shared: `3 MIG slices`, `time-slicing ×4`.")
    allocations = GpuAllocationSerializer(
        many=True,
        allow_null=True,
        help_text="Null: pods were never read, or nothing says whether this GPU is allocated.",
    )
    may_have_more = serializers.BooleanField(help_text="GPUs here are shared, and not all who share them are placed.")
    finding = GpuFindingSerializer(allow_null=True, help_text="The worst open one of it or its node. Null: none.")
    driver_version = serializers.CharField(help_text="Of its node; blank: nothing ever said it.")
    driver_unknown_since = serializers.DateTimeField(
        allow_null=True, help_text="Since when its label is gone, and `driver_version` what it was. Null: it is there."
    )
    is_seen = serializers.BooleanField(help_text="False: its cluster is not seen now, and this is how it was.")
    is_exported = serializers.BooleanField(help_text="Whether its cluster's source of telemetry ever named it.")
    metrics = serializers.DictField(
        child=MetricReadingSerializer(), help_text="By key: the usual ones, and those that were asked for or by."
    )
    utilisation_by = serializers.ChoiceField(choices=METRIC_KEYS, help_text="The metric that says how busy it is.")
    xid_words = serializers.CharField(help_text="What its exporter has for its last Xid; blank: nothing, or none.")
    sampled_at = serializers.DateTimeField(allow_null=True, help_text="The newest of `metrics`. Null: no sample.")


class GpuHealthPageSerializer(serializers.Serializer):
    count = serializers.IntegerField()
    next = serializers.URLField(allow_null=True)
    previous = serializers.URLField(allow_null=True)
    results = GpuHealthSerializer(many=True)
    without_value = serializers.IntegerField(
        help_text="How many match but for `metric`, which has no value of them to compare: they are not among these."
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
        # As the serializer would write it, which stands for it in the schema alone.
        response = page.get_paginated_response([written(seen) for seen in table.rows(offset, offset + limit)])
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
