"""Names in a sentence."""

from collections.abc import Sequence


def names(those: Sequence[str], *, most: int = 3) -> str:
    """ "a, b, c and 4 more": what fits in one sentence."""
    shown = ", ".join(those[:most])
    return shown if len(those) <= most else f"{shown} and {len(those) - most} more"
