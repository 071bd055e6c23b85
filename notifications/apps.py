from django.apps import AppConfig


class NotificationsConfig(AppConfig):
    name = "notifications"

    def ready(self) -> None:
        from fleet import retention
        from fleet.messages import listeners
        from health.evaluation.finding_sources import register
        from notifications.findings import UNDELIVERED
        from notifications.retention import tidy
        from notifications.wake import events_soon

        register(UNDELIVERED)
        listeners.HAPPENED.append(events_soon.ask)
        retention.ALSO.append(tidy)
