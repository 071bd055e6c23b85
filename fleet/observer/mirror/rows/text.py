"""Conversion of text, numbers and instants to the limits of columns: no input may break a flush."""

from collections.abc import Mapping
from datetime import datetime

VALUE_AT_MOST = 253  # Kubernetes allows 63 in a label's value
KEY_AT_MOST = 317
ANNOTATION_AT_MOST = 16_384  # HAMi registers eight GPUs with their distances in 6 KB
INTEGER_MOST = 2**31 - 1  # of PostgreSQL's integer
YEARS = (1970, 9000)


def fitted(text: str | None, most: int) -> str:
    """Truncates to the column, and removes NUL, which PostgreSQL refuses."""
    return text[:most].replace("\x00", "") if text else ""


def both_ends(text: str | None, most: int) -> str:
    """Truncates in the middle: runtimes report the action first and the error last."""
    if not text or len(text) <= most:
        return fitted(text, most)
    half = (most - 3) // 2
    return f"{fitted(text[:half], half)} … {fitted(text[-half:], half)}"


def fitted_words(most: int, *parts: str | None) -> str:
    return ": ".join(part for part in (fitted(part, most) for part in parts) if part)[:most]


def fitted_labels(labels: Mapping[str, str], *, most: int = VALUE_AT_MOST) -> dict[str, str]:
    """Returns valid labels. An overlong value is dropped, since a selector might match a part of it."""
    if _are_fit(labels, most):
        return dict(labels)
    return {
        key.replace("\x00", ""): value.replace("\x00", "")
        for key, value in labels.items()
        if len(key) <= KEY_AT_MOST and len(value) <= most
    }


def fitted_instant(at: datetime | None) -> datetime | None:
    """Returns the instant. None also for Go's zero time and for years out of range."""
    return at if at is not None and YEARS[0] <= at.year < YEARS[1] else None


def _are_fit(labels: Mapping[str, str], most: int) -> bool:
    """Tells whether all labels fit, without a loop over them."""
    if not labels:
        return True
    is_short = max(map(len, labels)) <= KEY_AT_MOST and max(map(len, labels.values())) <= most
    return is_short and "\x00" not in "".join(labels) and "\x00" not in "".join(labels.values())


def fitted_count(number: int | None) -> int | None:
    return None if number is None else max(0, min(number, INTEGER_MOST))
