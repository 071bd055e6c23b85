from django.apps import AppConfig


class MaintenanceConfig(AppConfig):
    name = "maintenance"

    def ready(self) -> None:
        from fleet.history import lines
        from maintenance.web.timeline import lines_of_cases

        lines.MORE.append(lines_of_cases)
