import django_filters as filters
from rest_framework import serializers

from fleet.api.filters import Text, YesNo, ordering
from fleet.api.shapes import Ref
from fleet.models import Finding, Severity
from people.api.edges import Listing


class FindingFilters(filters.FilterSet):
    cluster = Text(field_name="cluster__name", label="Name of the cluster.")
    node = filters.NumberFilter(label="Key of the node.")
    rule = Text()
    severity = filters.ChoiceFilter(choices=Severity.choices)
    open = YesNo(field_name="resolved_at", lookup_expr="isnull", label="Not resolved yet.")
    ordering = ordering("opened_at", "resolved_at")

    class Meta:
        model = Finding
        fields: list[str] = []


class FindingShape(serializers.ModelSerializer):
    cluster = Ref()
    node = Ref(allow_null=True, help_text="Null: it is about the cluster, about Quarterdeck, or the node is gone.")
    evidence = serializers.JSONField(help_text="The numbers it rests on.")

    class Meta:
        model = Finding
        fields = (
            "id", "cluster", "node", "subject", "rule", "severity", "sentence", "action", "evidence", "since",
            "opened_at", "updated_at", "resolved_at",
        )  # fmt: skip


class FindingList(Listing):
    """What is or was wrong with a node, a cluster or our sight of it, the newest first."""

    serializer_class = FindingShape
    filterset_class = FindingFilters
    queryset = Finding.objects.none()

    def get_queryset(self):
        visible = Finding.objects.visible_to(self.user).filter(opened_at__isnull=False)
        return visible.select_related("cluster", "node").defer("node__labels", "node__annotations")
