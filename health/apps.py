from django.apps import AppConfig


class HealthConfig(AppConfig):
    name = "health"

    def ready(self) -> None:
        from fleet import housekeeping
        from fleet.messages import listeners
        from health import wake
        from health.housekeeping import tidy

        listeners.JUDGED.append(wake.findings_soon.ask)
        listeners.CRASHED.append(wake.wake_crash_logs_of)
        housekeeping.ALSO.append(tidy)
