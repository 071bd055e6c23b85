from django.apps import AppConfig


class OperationsConfig(AppConfig):
    name = "operations"

    def ready(self) -> None:
        from fleet.history import lines
        from health.evaluation.finding_sources import register
        from health.sources import usage
        from operations.findings import REMOVED, WAITING
        from operations.ledger.disruptions import nodes_in_change
        from operations.web.timeline import lines_of_operations

        lines.MORE.append(lines_of_operations)
        register(WAITING)
        register(REMOVED)
        usage.IN_CHANGE.append(nodes_in_change)
