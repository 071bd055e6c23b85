from django.apps import AppConfig


class OperationsConfig(AppConfig):
    name = "operations"

    def ready(self) -> None:
        from fleet.history import lines
        from fleet.web import fleet_page
        from health.evaluation.finding_sources import register
        from health.sources import usage
        from operations.findings import REMOVED, STALLED, WAITING
        from operations.kinds import KINDS
        from operations.ledger.disruptions import nodes_in_change
        from operations.web.timeline import lines_of_operations

        lines.MORE.append(lines_of_operations)
        fleet_page.NODE_ACTS += [(kind.key, kind.title) for kind in KINDS.values() if kind.is_bulk]
        register(WAITING)
        register(REMOVED)
        register(STALLED)
        usage.IN_CHANGE.append(nodes_in_change)
