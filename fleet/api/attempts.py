"""Asking a cluster that does not answer once more, without waiting for its time, with a 204: a worker does it."""

from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework.response import Response

from edges.rest import Edge
from fleet.clusters.attempts import try_now
from fleet.models import Cluster
from people.rights import Permission, require


class AttemptList(Edge):
    @extend_schema(request=None, responses={204: OpenApiResponse(description="A worker asks it.")})
    def post(self, request, cluster_id: int) -> Response:
        """Ask a cluster at once that was left alone because it did not answer."""
        cluster = self.load(Cluster.objects.visible_to(self.user), cluster_id)
        require(self.user, Permission.STOP, cluster_id=cluster.pk, where=f"cluster {cluster.name}")
        try_now(cluster)
        return Response(status=204)
