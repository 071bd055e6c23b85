"""The apps of this repository, as installed: a new one is in every test that goes through all of them."""

from pathlib import Path

from django.apps import AppConfig, apps

ROOT = Path(__file__).resolve().parents[1]


def own_apps() -> list[AppConfig]:
    """Returns them in the order of the settings."""
    return [app for app in apps.get_app_configs() if Path(app.path).parent == ROOT]
