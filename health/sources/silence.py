"""The reasons why a cluster's GPU telemetry, which arrived before or was requested, does not arrive."""

from datetime import datetime

from fleet.models import ExporterRound, ExportersState
from health.models import SourceState, TelemetrySource
from health.sources.node_telemetry import source_state
from wording.instants import to_the_minute
from wording.numbers import count


def why_silent(source: TelemetrySource | None, asked: ExporterRound | None, *, now: datetime) -> str:
    """Returns the cause in a sentence that stays the same while the cause does.

    Empty if telemetry arrives, or none is expected: no exporter ever answered, or all were removed.
    """
    if not source_state(source, asked, now=now).is_silent:
        return ""
    if source is not None and source.state != SourceState.OFF:
        return source.message or _unasked("it", source.answered_at)
    return _why_exporters(asked) if asked is not None else ""


def is_silence_known(source: TelemetrySource | None, asked: ExporterRound | None) -> bool:
    """Returns whether silence can be known. For exporters of an unobserved cluster it cannot."""
    by_prometheus = source is not None and source.state != SourceState.OFF
    return by_prometheus or asked is None or asked.state != ExportersState.UNSEEN


def _why_exporters(asked: ExporterRound) -> str:
    if asked.state in (ExportersState.FORBIDDEN, ExportersState.TOO_MANY):
        return asked.message
    if asked.state != ExportersState.ASKED:
        return ""
    if asked.answered:
        return _unasked("its exporters", asked.read_at)
    if asked.exporters == 1:
        return "The node's exporter does not answer."
    return f"None of its {count(asked.exporters, 'exporter')} answers."


def _unasked(what: str, last: datetime | None) -> str:
    return (
        f"No worker has queried {what} since {to_the_minute(last)}." if last else f"No worker has queried {what} yet."
    )
