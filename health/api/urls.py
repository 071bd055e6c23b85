from django.urls import path

from health.api.findings import FindingList
from health.api.stacks import CompatibilityDetail, NodeStackDetail

urlpatterns = [
    path("clusters/<int:cluster_id>/compatibility", CompatibilityDetail.as_view(), name="api-cluster-compatibility"),
    path("findings", FindingList.as_view()),
    path("nodes/<int:node_id>/stack", NodeStackDetail.as_view(), name="api-node-stack"),
]
