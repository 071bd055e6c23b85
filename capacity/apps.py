from django.apps import AppConfig


class CapacityConfig(AppConfig):
    name = "capacity"

    def ready(self) -> None:
        from capacity.waiting_pods import refined_reasons
        from fleet import pod_reasons

        pod_reasons.REFINERS.append(refined_reasons)
