"""Lists of names as text."""

from collections.abc import Sequence

from wording.numbers import count


def names(listed: Sequence[str], *, most: int = 3) -> str:
    """Returns "a, b, c and 4 more"."""
    shown = ", ".join(listed[:most])
    return shown if len(listed) <= most else f"{shown} and {len(listed) - most} more"


def one_or_count(listed: Sequence[str], noun: str) -> str:
    """Returns the only name, or text such as "3 nodes"."""
    return listed[0] if len(listed) == 1 else count(len(listed), noun)
