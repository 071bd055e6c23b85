from django.urls import path

from capacity.api.defragmentation import PoolDefragmentation
from capacity.api.free_gpus import ClusterFreeGpuHistory, ClusterFreeGpus, PoolFreeGpuHistory, PoolFreeGpus
from capacity.api.mig_demand import PoolMigDemand
from capacity.api.namespaces import NamespaceDetail, PodWorkloads, WorkloadDetail
from capacity.api.placement import PoolPlacement
from capacity.api.pod_views import PodViewDetail, PodViewList
from capacity.api.pods import PodDetail, WhyPending
from capacity.api.prices import PoolPriceDetail, PriceDetail, Prices
from capacity.api.rejected_workloads import RejectedWorkloadList
from capacity.api.service_level import PoolServiceLevelDetail, PoolServiceLevelPreview
from capacity.api.suspended_jobs import SuspendedJobs
from capacity.api.tenant_matrix import PoolTenants
from capacity.api.unstarted_pods import UnstartedPodCounts
from capacity.api.usage import Usage, WeeklyUsageReport

urlpatterns = [
    path("pod-views", PodViewList.as_view()),
    path("pod-views/<int:view_id>", PodViewDetail.as_view()),
    path("pools/<int:pool_id>/free-gpus", PoolFreeGpus.as_view(), name="api-pool-free-gpus"),
    path("pools/<int:pool_id>/free-gpus/history", PoolFreeGpuHistory.as_view(), name="api-pool-free-gpu-history"),
    path("pools/<int:pool_id>/defragmentation", PoolDefragmentation.as_view(), name="api-pool-defragmentation"),
    path("pools/<int:pool_id>/mig-demand", PoolMigDemand.as_view(), name="api-pool-mig-demand"),
    path("pools/<int:pool_id>/price", PoolPriceDetail.as_view(), name="api-pool-price"),
    path("pools/<int:pool_id>/placement", PoolPlacement.as_view(), name="api-pool-placement"),
    path("pools/<int:pool_id>/service-level", PoolServiceLevelDetail.as_view(), name="api-pool-service-level"),
    path("pools/<int:pool_id>/service-level/preview", PoolServiceLevelPreview.as_view()),
    path("pools/<int:pool_id>/tenants", PoolTenants.as_view(), name="api-pool-tenants"),
    path("clusters/<int:cluster_id>/free-gpus", ClusterFreeGpus.as_view(), name="api-cluster-free-gpus"),
    path("clusters/<int:cluster_id>/namespaces/<path:namespace>", NamespaceDetail.as_view(), name="api-namespace"),
    path("clusters/<int:cluster_id>/workloads/<path:workload>", WorkloadDetail.as_view(), name="api-workload"),
    path("pod-workloads", PodWorkloads.as_view(), name="api-pod-workloads"),
    path(
        "clusters/<int:cluster_id>/free-gpus/history",
        ClusterFreeGpuHistory.as_view(),
        name="api-cluster-free-gpu-history",
    ),
    path("usage", Usage.as_view(), name="api-usage"),
    path("usage/prices", Prices.as_view(), name="api-prices"),
    path("usage/prices/<int:price_id>", PriceDetail.as_view(), name="api-price"),
    path("usage/report", WeeklyUsageReport.as_view(), name="api-usage-report"),
    path("rejected-workloads", RejectedWorkloadList.as_view(), name="api-rejected-workloads"),
    path("suspended-jobs", SuspendedJobs.as_view(), name="api-suspended-jobs"),
    path("pods/unstarted", UnstartedPodCounts.as_view(), name="api-unstarted-pods"),
    path("pods/<int:pod_id>", PodDetail.as_view(), name="api-pod"),
    path("pods/<int:pod_id>/why-pending", WhyPending.as_view(), name="api-why-pending"),
]
