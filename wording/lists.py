"""Lists of names as text."""

from collections.abc import Sequence


def names(listed: Sequence[str], *, most: int = 3) -> str:
    """Returns "a, b, c and 4 more"."""
    shown = ", ".join(listed[:most])
    return shown if len(listed) <= most else f"{shown} and {len(listed) - most} more"
