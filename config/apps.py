from django.apps import AppConfig


class QuarterdeckConfig(AppConfig):
    name = "config"
    label = "quarterdeck"

    def ready(self) -> None:
        from config import checks, sweeps  # noqa: F401 (registers them, and hears of each sweep)
