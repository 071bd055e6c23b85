"""Offsets of instants in addresses. Pure."""

import re

LOST = re.compile(
    r"(:[0-9]{2}(?:\.[0-9]{1,6})?) ([0-9]{2}:[0-9]{2})\Z"
)  # after a time: else it parts that from its day


def with_offset(text: str) -> str:
    """With the + that an address makes a blank of, where nobody spelt it %2B: `2026-11-30T02:40 02:00`."""
    return LOST.sub(r"\1+\2", text)
