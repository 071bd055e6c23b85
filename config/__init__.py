"""Settings, addresses, errors as answers, health checks and metrics. It may import every app."""

from config.celery import app as celery

__all__ = ["celery"]
