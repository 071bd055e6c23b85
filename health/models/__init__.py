"""What is wrong, what crashed operands said last, and where the telemetry of GPUs is read."""

from health.models.crash_log import CrashLog
from health.models.finding import Finding
from health.models.telemetry_source import SourceState, TelemetrySource

__all__ = ["CrashLog", "Finding", "SourceState", "TelemetrySource"]
