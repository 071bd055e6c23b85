"""What is wrong, and what crashed operands said last."""

from health.models.crash_log import CrashLog
from health.models.finding import Finding

__all__ = ["CrashLog", "Finding"]
