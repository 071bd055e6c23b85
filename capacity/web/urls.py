from django.urls import path

from capacity.web import (
    defragmentation_part,
    free_gpu_history,
    free_gpu_parts,
    namespace_page,
    placement_part,
    pod_page,
    pods_page,
    prices_page,
    usage_page,
    usage_report_page,
)

urlpatterns = [
    path("pods", pods_page.pods, name="pods"),
    path("parts/pods", pods_page.pods_part, name="pods-part"),
    path("parts/suspended-jobs", pods_page.suspended_jobs_part, name="suspended-jobs-part"),
    path("pods.csv", pods_page.csv_file, name="pods-csv"),
    path("pods/views", pods_page.save, name="save-pod-view"),
    path("pods/views/<int:view_id>/forget", pods_page.forget, name="forget-pod-view"),
    path("pods/<int:pod_id>", pod_page.pod, name="pod"),
    path("parts/pods/<int:pod_id>", pod_page.pod_part, name="pod-part"),
    path("clusters/<int:cluster_id>/namespaces/<path:name>", namespace_page.namespace, name="namespace"),
    path(
        "parts/clusters/<int:cluster_id>/namespaces/<path:name>", namespace_page.namespace_part, name="namespace-part"
    ),
    path("clusters/<int:cluster_id>/workloads/<path:path>", namespace_page.workload, name="workload"),
    path("parts/clusters/<int:cluster_id>/workloads/<path:path>", namespace_page.workload_part, name="workload-part"),
    path("parts/pools/<int:pool_id>/free-gpus", free_gpu_parts.pool_free_gpus_part, name="pool-free-gpus"),
    path(
        "parts/pools/<int:pool_id>/free-gpu-history",
        free_gpu_history.pool_free_gpu_history_part,
        name="pool-free-gpu-history",
    ),
    path("parts/pools/<int:pool_id>/placement", placement_part.pool_placement_part, name="pool-placement"),
    path(
        "parts/pools/<int:pool_id>/defragmentation",
        defragmentation_part.pool_defragmentation_part,
        name="pool-defragmentation",
    ),
    path("parts/pools/<int:pool_id>/mig-demand", free_gpu_parts.pool_mig_demand_part, name="pool-mig-demand"),
    path("pools/<int:pool_id>/free-gpus.csv", free_gpu_history.csv_file, name="pool-free-gpus-csv"),
    path("parts/clusters/<int:cluster_id>/free-gpus", free_gpu_parts.cluster_free_gpus_part, name="cluster-free-gpus"),
    path("usage", usage_page.usage, name="usage"),
    path("parts/usage", usage_page.usage_part, name="usage-part"),
    path("usage/report", usage_report_page.usage_report_page, name="usage-report"),
    path("usage/report.html", usage_report_page.html_file, name="usage-report-file"),
    path("usage/report.csv", usage_report_page.csv_file, name="usage-report-csv"),
    path("parts/usage/report", usage_report_page.usage_report_part, name="usage-report-part"),
    path("usage/prices", prices_page.prices, name="prices"),
    path("usage/prices/<int:price_id>/remove", prices_page.remove, name="remove-price"),
    path("usage.csv", usage_page.csv_file, name="usage-csv"),
]
