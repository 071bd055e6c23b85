"""Durations as text."""

from datetime import timedelta

UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


def spell(duration: timedelta) -> str:
    """Returns "3 min", "2 h 5 min" or "4 d 1 h": the two largest units, in whole seconds."""
    left = max(0, int(duration.total_seconds()))
    parts: list[str] = []
    for seconds, unit in UNITS:
        number, left = divmod(left, seconds)
        if number:
            parts.append(f"{number} {unit}")
        elif parts:
            break
    return " ".join(parts[:2]) if parts else "0 s"
