from django.core.exceptions import ValidationError as BadWords
from django.http import QueryDict
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.response import Response

from edges.rest import Edge
from fleet.api.filters import Words
from fleet.api.serializers import RefSerializer
from fleet.segments.facet_counts import cross, segments_of, unseen_by
from fleet.segments.facets import BY_KEY, FACETS, Choice, Facet

AXES = ("rows", "columns")
NULL = "Null: the number is unknown for every node."
UNCOUNTED = "Nodes with an unknown number of GPUs. `gpus` omits these nodes."
KEYS = [facet.key for facet in FACETS]


class ValueSerializer(serializers.Serializer):
    value = serializers.CharField(help_text="Value as a filter of the node list. `unknown`: no known value.")
    nodes = serializers.IntegerField()
    gpus = serializers.IntegerField(
        allow_null=True, help_text=f"Physical GPUs, whether whole, partitioned or shared. {NULL}"
    )
    uncounted_nodes = serializers.IntegerField(help_text=UNCOUNTED)
    is_chosen = serializers.BooleanField()


class FacetSerializer(serializers.Serializer):
    facet = serializers.CharField(source="facet.key")
    title = serializers.CharField(source="facet.title")
    values = ValueSerializer(many=True)


class CellSerializer(serializers.Serializer):
    value = serializers.CharField()
    nodes = serializers.IntegerField()
    gpus = serializers.IntegerField(allow_null=True, help_text=NULL)
    uncounted_nodes = serializers.IntegerField(help_text=UNCOUNTED)


class LineSerializer(serializers.Serializer):
    value = serializers.CharField()
    cells = CellSerializer(many=True)


class CrossSerializer(serializers.Serializer):
    rows = serializers.CharField(source="rows.key")
    columns = serializers.CharField(source="columns.key")
    lines = LineSerializer(many=True)
    unshown = serializers.IntegerField(help_text="Nodes with values that are too rare for the table.")


class SegmentsSerializer(serializers.Serializer):
    """GPU nodes by facet. A facet's counts respect the choices of all other facets."""

    nodes = serializers.IntegerField(help_text="Number of nodes that match all chosen values.")
    gpus = serializers.IntegerField(allow_null=True, help_text=NULL)
    uncounted_nodes = serializers.IntegerField(help_text=UNCOUNTED)
    unseen = RefSerializer(many=True, help_text="Clusters with unknown nodes. No number includes these clusters.")
    all_nodes = serializers.IntegerField()
    facets = FacetSerializer(
        many=True, help_text="Includes `numa` only if chosen or crossed, because this count is expensive."
    )
    cross = CrossSerializer(allow_null=True, help_text="Null: the request names no `rows` and `columns`.")


class SegmentList(Edge):
    """Counts the nodes and GPUs of each value of each facet."""

    @extend_schema(
        responses=SegmentsSerializer,
        parameters=[
            *(OpenApiParameter(facet.key, str, many=True, description=f"Choose by {facet.title}.") for facet in FACETS),
            *(OpenApiParameter(axis, str, enum=KEYS, description="A facet to cross.") for axis in AXES),
        ],
    )
    def get(self, request) -> Response:
        choice, axes = parse_segment_query(request.query_params)
        found = segments_of(self.user, choice, axes=axes)
        table = cross(found.matching, axes[0], axes[1]) if axes else None
        said = {
            "nodes": found.nodes,
            "gpus": found.gpus,
            "uncounted_nodes": found.uncounted_nodes,
            "unseen": unseen_by(self.user),
            "all_nodes": found.all_nodes,
            "facets": found.facets,
            "cross": table,
        }
        return Response(SegmentsSerializer(said).data)


def parse_segment_query(query: QueryDict) -> tuple[Choice, tuple[Facet, ...]]:
    """Parses the query.

    :raises ValidationError: for an unknown facet; an ignored typo would count the whole fleet
    """
    wrong = dict.fromkeys(sorted(set(query) - {*KEYS, *AXES}), f"Unknown facet. Facets: {', '.join(KEYS)}.")
    named = {axis: str(query[axis]) for axis in AXES if query.get(axis)}
    wrong |= {axis: f"“{key[:40]}” is not a facet." for axis, key in named.items() if key not in BY_KEY}
    if len(named) == 1:
        wrong |= {axis: "A table needs both rows and columns." for axis in AXES if axis not in named}
    choice = {}
    for key in KEYS:
        try:
            choice[key] = Words().clean(query.getlist(key))
        except BadWords as error:
            wrong[key] = " ".join(error.messages)
    if wrong:
        raise ValidationError(wrong)
    return {key: values for key, values in choice.items() if values}, tuple(
        BY_KEY[named[axis]] for axis in AXES if named
    )
