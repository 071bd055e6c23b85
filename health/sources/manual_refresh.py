"""A person who does not wait until it is time to ask a source again."""

from datetime import datetime

from health import wake
from health.models import TelemetrySource


class SourceOff(Exception):
    """It is switched off: nobody asks it."""


def ask_now(source: TelemetrySource, *, now: datetime) -> None:
    """:raises SourceOff"""
    if not TelemetrySource.ask_soon(source.pk, now=now):
        raise SourceOff("This source is switched off. Switch it on, and workers ask it.")
    wake.wake_telemetry_of(source.cluster_id)
