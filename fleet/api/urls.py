from django.urls import path

from fleet.api.cluster_stacks import ClusterStackDetail
from fleet.api.clusters import AcceptanceList, AttemptList, ClusterDetail, ClusterList
from fleet.api.driver_objects import DriverObjectList
from fleet.api.gpu_history import GpuPlacements, GpuTimeline
from fleet.api.gpus import GpuList
from fleet.api.node_history import NodeMoments, NodeNotes, NodeTimeline
from fleet.api.nodes import NodeDetail, NodeEventList, NodeList
from fleet.api.pods import PodList
from fleet.api.pool_files import ClusterPoolFile, PoolFiles
from fleet.api.pools import PoolDetail, PoolList, PoolPreviews, PoolSuggestions
from fleet.api.segments import SegmentList

urlpatterns = [
    path("clusters", ClusterList.as_view()),
    path("clusters/<int:cluster_id>", ClusterDetail.as_view()),
    path("clusters/<int:cluster_id>/acceptances", AcceptanceList.as_view()),
    path("clusters/<int:cluster_id>/attempts", AttemptList.as_view()),
    path("clusters/<int:cluster_id>/stack", ClusterStackDetail.as_view()),
    path("driver-objects", DriverObjectList.as_view()),
    path("gpus", GpuList.as_view()),
    path("nodes", NodeList.as_view()),
    path("nodes/<int:node_id>", NodeDetail.as_view()),
    path("nodes/<int:node_id>/events", NodeEventList.as_view(), name="node-events"),
    path("nodes/<int:node_id>/timeline", NodeTimeline.as_view()),
    path("nodes/<int:node_id>/moment", NodeMoments.as_view()),
    path("nodes/<int:node_id>/notes", NodeNotes.as_view()),
    path("nodes/<int:node_id>/gpus/<int:index>/placements", GpuPlacements.as_view()),
    path("nodes/<int:node_id>/gpus/<int:index>/timeline", GpuTimeline.as_view()),
    path("pods", PodList.as_view()),
    path("pools", PoolList.as_view()),
    path("pools/<int:pool_id>", PoolDetail.as_view()),
    path("pool-previews", PoolPreviews.as_view()),
    path("pool-files", PoolFiles.as_view()),
    path("clusters/<int:cluster_id>/pool-file", ClusterPoolFile.as_view()),
    path("clusters/<int:cluster_id>/pool-suggestions", PoolSuggestions.as_view()),
    path("segments", SegmentList.as_view()),
]
