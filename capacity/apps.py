from django.apps import AppConfig


class CapacityConfig(AppConfig):
    name = "capacity"

    def ready(self) -> None:
        from capacity.free_gpus import free_gpu_history
        from capacity.waiting_pods import refined_reasons
        from fleet import pod_reasons, retention
        from health.sources import usage

        pod_reasons.REFINERS.append(refined_reasons)
        usage.RECORDED.append(free_gpu_history.record)
        retention.ALSO.append(free_gpu_history.tidy)
