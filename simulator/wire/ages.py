"""Durations as kubectl's tables say them (k8s.io/apimachinery, util/duration.HumanDuration)."""

from datetime import UTC, datetime, timedelta

YEAR_H = 24 * 365


def age(timestamp: str | None, now: datetime) -> str:
    return human(now - parsed(timestamp)) if timestamp else "<unknown>"


def parsed(timestamp: str) -> datetime:
    at = datetime.fromisoformat(timestamp.replace("Z", "+00:00"))
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def human(duration: timedelta) -> str:
    seconds = int(duration.total_seconds())
    minutes, hours = seconds // 60, seconds // 3600
    if seconds < -1:
        return "<invalid>"
    if seconds < 120:
        return f"{max(seconds, 0)}s"
    if minutes < 10:
        return _two(minutes, "m", seconds % 60, "s")
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return _two(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    if hours < 192:
        return _two(hours // 24, "d", hours % 24, "h")
    if hours < 2 * YEAR_H:
        return f"{hours // 24}d"
    if hours < 8 * YEAR_H:
        return _two(hours // YEAR_H, "y", hours // 24 % 365, "d")
    return f"{hours // YEAR_H}y"


def _two(large: int, large_unit: str, small: int, small_unit: str) -> str:
    return f"{large}{large_unit}{small}{small_unit}" if small else f"{large}{large_unit}"
