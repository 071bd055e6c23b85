"""Accepting a cluster that was built anew, with a 204: a worker does the rest, and its pages show it."""

from django.utils import timezone
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from edges.rest import Asked, Edge
from fleet.clusters.acceptance import accept
from fleet.models import Cluster
from people.rights import Permission, require


class AcceptanceRequest(Asked):
    uid = serializers.CharField(max_length=64, help_text="The `foreign_uid` of the cluster, as you saw it.")
    reason = serializers.CharField(max_length=1000, required=False, default="", allow_blank=True)


class AcceptanceList(Edge):
    @extend_schema(request=AcceptanceRequest, responses={204: OpenApiResponse(description="Accepted.")})
    def post(self, request, cluster_id: int) -> Response:
        """Accept that what answers in the place of this cluster is the same one, built anew. Its rows begin again."""
        cluster = self.load(Cluster.objects.visible_to(self.user), cluster_id)
        require(self.user, Permission.ADMINISTER, cluster_id=cluster.pk, where=f"cluster {cluster.name}")
        asked = self.read(AcceptanceRequest)
        accept(cluster, actor=self.user.get_username(), now=timezone.now(), **asked)
        return Response(status=204)
