from django.urls import path

from health.api.findings import FindingList
from health.api.stacks import CompatibilityDetail, NodeStackDetail
from health.api.telemetry import (
    NodeTelemetryDetail,
    TelemetryAttemptList,
    TelemetrySourceDetail,
    TelemetrySourceList,
)

urlpatterns = [
    path("clusters/<int:cluster_id>/compatibility", CompatibilityDetail.as_view(), name="api-cluster-compatibility"),
    path(
        "clusters/<int:cluster_id>/telemetry-source",
        TelemetrySourceDetail.as_view(),
        name="api-cluster-telemetry-source",
    ),
    path("clusters/<int:cluster_id>/telemetry-source/attempts", TelemetryAttemptList.as_view()),
    path("findings", FindingList.as_view()),
    path("nodes/<int:node_id>/stack", NodeStackDetail.as_view(), name="api-node-stack"),
    path("nodes/<int:node_id>/telemetry", NodeTelemetryDetail.as_view(), name="api-node-telemetry"),
    path("telemetry-sources", TelemetrySourceList.as_view()),
]
