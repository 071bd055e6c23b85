"""JSON parts of an object stored as sent: limited in width, depth and length, without NUL."""

from typing import Any

from fleet.observer.mirror.rows.text import KEY_AT_MOST, fitted

WIDE, DEEP, LONG = 256, 8, 1000
BIGGEST = 2**63 - 1


def fitted_json(value: Any, *, depth: int = DEEP) -> Any:
    """Returns the value with parts below `depth` emptied."""
    if isinstance(value, str):
        return fitted(value, LONG)
    if isinstance(value, dict):
        kept = list(value.items())[:WIDE] if depth else []
        return {fitted(str(key), KEY_AT_MOST): fitted_json(inner, depth=depth - 1) for key, inner in kept}
    if isinstance(value, list):
        return [fitted_json(inner, depth=depth - 1) for inner in (value[:WIDE] if depth else [])]
    if isinstance(value, bool) or value is None:
        return value
    return max(-BIGGEST, min(value, BIGGEST)) if isinstance(value, int | float) else None
