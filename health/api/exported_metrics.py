"""The nodes of a cluster that export each metric."""

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from edges.rest import Edge
from fleet.api.serializers import RefSerializer
from fleet.models import Cluster, Node
from health.sources.cluster_telemetry import standings_of
from health.sources.exported_metrics import exporting_of
from health.telemetry.metrics import METRICS, missing_metrics
from people.rights import Permission, require

METRIC_KEYS = [(key, key) for key in METRICS]


class NodesCountedSerializer(serializers.Serializer):
    """Counts of all nodes with GPUs; each node is in exactly one."""

    exported = serializers.IntegerField(min_value=0, help_text="Nodes that export the metric.")
    not_exported = serializers.IntegerField(
        min_value=0, help_text="Nodes that do not export the metric, or whose vendor's exporters never do."
    )
    never_reported = serializers.IntegerField(
        min_value=0, help_text="Nodes that reported nothing within a day. They may export the metric."
    )


class ExportedMetricsSerializer(serializers.Serializer):
    """The exported metrics, from the cluster's Prometheus or from exporters that are read directly."""

    cluster = RefSerializer()
    is_reporting = serializers.BooleanField(
        help_text="False: the cluster sends no GPU telemetry now. The other fields are the last known state."
    )
    nodes = serializers.DictField(
        child=NodesCountedSerializer(),
        allow_null=True,
        help_text="Number of nodes that export each metric. Null: unknown.",
    )
    not_exported = serializers.ListField(
        child=serializers.ChoiceField(choices=METRIC_KEYS),
        help_text="Metrics that exporters have by default, and that no exporter of this cluster has.",
    )
    to_be_switched_on = serializers.ListField(
        child=serializers.ChoiceField(choices=METRIC_KEYS),
        help_text="Metrics that must be enabled in an exporter, and that no exporter of this cluster has.",
    )


class ExportedMetrics(Edge):
    @extend_schema(responses=ExportedMetricsSerializer)
    def get(self, request, cluster_id: int) -> Response:
        """Returns the exported metrics of a cluster. The caller must see the whole cluster."""
        cluster = self.load(Cluster.objects.visible_to(self.user), cluster_id)
        require(self.user, Permission.SEE, cluster_id=cluster.pk, where=f"cluster {cluster.name}")
        standing = standings_of([cluster.pk], now=timezone.now())[cluster.pk]
        exporting = exporting_of({cluster.pk: standing}, Node.objects.filter(cluster=cluster)).get(cluster.pk)
        usual, others = missing_metrics(exporting.exported) if exporting else ([], [])
        said = {
            "cluster": cluster,
            "is_reporting": standing.is_reporting,
            "nodes": exporting.by_metric() if exporting else None,
            "not_exported": [metric.key for metric in usual],
            "to_be_switched_on": [metric.key for metric in others],
        }
        return Response(ExportedMetricsSerializer(said).data)
