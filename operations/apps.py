from django.apps import AppConfig


class OperationsConfig(AppConfig):
    name = "operations"

    def ready(self) -> None:
        from health.evaluation.finding_sources import register
        from operations.findings import WAITING

        register(WAITING)
