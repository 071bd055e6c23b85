"""A user's request to query a source before it is due."""

from datetime import datetime

from health import wake
from health.models import TelemetrySource


class SourceOff(Exception):
    """The source is switched off, so nobody queries it."""


def ask_now(source: TelemetrySource, *, now: datetime) -> None:
    """Makes the source due now.

    :raises SourceOff: when the source is switched off
    """
    if not TelemetrySource.ask_soon(source.pk, now=now):
        raise SourceOff("This source is disabled. Enable it so that workers query it.")
    wake.wake_telemetry_of(source.cluster_id)
