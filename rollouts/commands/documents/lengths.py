"""Durations as people write them (90s, 30m, 1h30m) and as pages show them (2 h 5 min). Exact both ways. Pure."""

import re
from decimal import Decimal

LONGEST = 60  # characters
FINEST = 18  # digits after the point, finer than any clock
WRITTEN = re.compile(
    r"(?:(?P<d>\d{1,9}) ?d)? ?(?:(?P<h>\d{1,9}) ?h)? ?"
    r"(?:(?P<m>\d{1,9}) ?m(?:in)?)? ?(?:(?P<s>\d{1,9}(?:\.\d{1,18})?) ?s)?",
    re.ASCII,
)
SECONDS = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}
WRITE_IT = "Write it as 90s, 30m, 1h30m or 2d."


def read_length(text: str) -> float | None:
    """Returns seconds; None if the text is no duration."""
    found = WRITTEN.fullmatch(text.strip()) if len(text) <= LONGEST else None
    if found is None or not any(found.groups()):
        return None
    seconds = sum((Decimal(found[unit] or 0) * of for unit, of in SECONDS.items()), Decimal(0))
    return int(seconds) if seconds == seconds.to_integral_value() else float(seconds)


def write_length(seconds: float) -> str:
    left = round(Decimal(repr(seconds)), FINEST)
    parts = []
    for unit, of in SECONDS.items():
        number, left = (left, Decimal(0)) if of == 1 else divmod(left, of)
        if number:
            parts.append(f"{number.normalize():f}{unit}")
    return "".join(parts) or "0s"
