from django.apps import AppConfig


class NotificationsConfig(AppConfig):
    name = "notifications"

    def ready(self) -> None:
        from fleet import retention
        from fleet.messages import listeners
        from notifications.retention import tidy
        from notifications.wake import events_soon

        listeners.HAPPENED.append(events_soon.ask)
        retention.ALSO.append(tidy)
