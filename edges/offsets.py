"""UTC offsets in addresses. Pure."""

import re

LOST = re.compile(
    r"(:[0-9]{2}(?:\.[0-9]{1,6})?) ([0-9]{2}:[0-9]{2})\Z"
)  # after a time; elsewhere a blank separates the day from the time


def with_offset(text: str) -> str:
    """Restores the + that address decoding turned into a blank: `2026-11-30T02:40 02:00`."""
    return LOST.sub(r"\1+\2", text)
