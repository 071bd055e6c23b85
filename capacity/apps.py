from django.apps import AppConfig


class CapacityConfig(AppConfig):
    name = "capacity"

    def ready(self) -> None:
        from capacity.free_gpus import free_gpu_history
        from capacity.placements import service_level_history
        from capacity.placements.placement_findings import (
            ACROSS_NUMA,
            BROKEN_POLICY,
            CLAIMS_ACROSS_NUMA,
            WORSE_ON_FULL_NODES,
        )
        from capacity.pods.pod_filter import page_of_workload
        from capacity.usage import workload_owners
        from capacity.usage.price_changes import record_change
        from capacity.usage.small_workload_findings import SMALL_WORKLOADS
        from capacity.waiting_pods import refined_reasons
        from fleet import pod_reasons, retention
        from fleet.pools.changes import CHANGED
        from health.evaluation.finding_sources import register
        from health.rules.pods_pending_long import PodsPendingLong
        from health.sources import usage
        from health.subjects import PAGES

        register(BROKEN_POLICY)
        register(ACROSS_NUMA)
        register(CLAIMS_ACROSS_NUMA)
        register(WORSE_ON_FULL_NODES)
        register(SMALL_WORKLOADS)
        pod_reasons.REFINERS.append(refined_reasons)
        CHANGED.append(record_change)
        PAGES[PodsPendingLong.key] = page_of_workload
        usage.RECORDED.append(free_gpu_history.record)
        usage.RECORDED.append(workload_owners.record)
        retention.ALSO.append(free_gpu_history.tidy)
        retention.ALSO.append(workload_owners.tidy)
        retention.ALSO.append(service_level_history.tidy)
