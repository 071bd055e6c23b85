from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from fleet.api.shapes import FreshnessShape, TallyShape
from fleet.models import Cluster
from fleet.queries import ClusterSeen, see_clusters
from people.api.edges import Edge, Listing, SeenSerializer

ADMINS = "How the workers reach it. Null: only admins see it."


class ClusterShape(SeenSerializer):
    row = "cluster"
    counts = TallyShape(source="seen.tally")
    freshness = FreshnessShape(source="seen.kinds", many=True)
    kubeconfig = serializers.CharField(source="seen.kubeconfig", allow_null=True, help_text=ADMINS)
    context = serializers.CharField(source="seen.context", allow_null=True, help_text=ADMINS)  # type: ignore[assignment]

    class Meta:
        model = Cluster
        fields = (
            "id", "name", "uid", "mode", "server_version", "added_at", "counts", "freshness", "kubeconfig", "context",
        )  # fmt: skip


class ClusterList(Listing):
    serializer_class = ClusterShape

    def get_queryset(self):
        return Cluster.objects.visible_to(self.user)

    def see(self, rows) -> list[ClusterSeen]:
        return see_clusters(rows, user=self.user, now=timezone.now())


class ClusterDetail(Edge):
    @extend_schema(responses=ClusterShape)
    def get(self, request, cluster_id: int) -> Response:
        cluster = self.load(Cluster.objects.visible_to(self.user), cluster_id)
        (seen,) = see_clusters([cluster], user=self.user, now=timezone.now())
        return Response(ClusterShape(seen).data)
