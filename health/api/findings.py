import django_filters as filters
from rest_framework import serializers

from edges.rest import Listing
from fleet.api.filters import Text, YesNo, ordering
from fleet.api.serializers import RefSerializer
from health.models import Finding
from health.models.finding import SEVERITIES


class FindingFilters(filters.FilterSet):
    cluster = Text(field_name="cluster__name", label="Name of the cluster.")
    node = filters.NumberFilter(label="Key of the node.")
    rule = Text()
    severity = filters.ChoiceFilter(choices=SEVERITIES)
    confirming = YesNo(
        method="filter_confirming", label="Suspected, and not confirmed yet. Without it: confirmed ones."
    )
    open = YesNo(field_name="resolved_at", lookup_expr="isnull", label="Not resolved yet.")
    ordering = ordering("opened_at", "resolved_at")

    class Meta:
        model = Finding
        fields: list[str] = []

    def filter_confirming(self, rows, _name, value):
        return rows.confirming() if value else rows.filter(opened_at__isnull=False)


class FindingSerializer(serializers.ModelSerializer):
    cluster = RefSerializer()
    node = RefSerializer(
        allow_null=True, help_text="Null: it is about the cluster, about Quarterdeck, or the node is gone."
    )
    evidence = serializers.JSONField(help_text="The numbers it rests on.")

    class Meta:
        model = Finding
        fields = (
            "id", "cluster", "node", "subject", "rule", "severity", "state", "sentence", "action", "evidence",
            "since", "confirmed_at", "opened_at", "updated_at", "resolved_at",
        )  # fmt: skip


class FindingList(Listing):
    """What is or was wrong with a node, a cluster or our sight of it, the newest first."""

    serializer_class = FindingSerializer
    filterset_class = FindingFilters
    queryset = Finding.objects.none()

    def get_queryset(self):
        visible = Finding.objects.visible_to(self.user)
        if "confirming" not in self.request.query_params:
            visible = visible.filter(opened_at__isnull=False)
        return visible.select_related("cluster", "node").defer("node__labels", "node__annotations")
