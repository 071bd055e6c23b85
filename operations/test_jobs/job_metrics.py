"""The number that a test Job prints: by a path in the last JSON value that begins a line of its log. Pure."""

import json
import math
from collections.abc import Sequence
from typing import Any


def number_at(lines: Sequence[str], path: str) -> float | None:
    """Returns the number at a path such as `testcases.0.sum`; None if the log has no JSON, or no number there."""
    value = _last_json(lines)
    for key in path.split("."):
        if isinstance(value, dict):
            value = value.get(key)
        elif isinstance(value, list) and key.isdecimal() and int(key) < len(value):
            value = value[int(key)]
        else:
            return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:  # a whole number beyond floats
        return None


def _last_json(lines: Sequence[str]) -> Any:
    for first in reversed(range(len(lines))):
        if lines[first][:1] in ("{", "["):
            try:
                value, _ = json.JSONDecoder().raw_decode("\n".join(lines[first:]))
            except (ValueError, RecursionError):
                continue
            return value
    return None
