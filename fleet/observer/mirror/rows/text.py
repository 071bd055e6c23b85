"""Text, numbers and instants as columns can hold them: a cluster may say anything, and must break no flush with it."""

from collections.abc import Mapping
from datetime import datetime

VALUE_AT_MOST = 253  # Kubernetes allows 63 in a label's value; a longer one is no label of its
KEY_AT_MOST = 317
ANNOTATION_AT_MOST = 16_384  # eight GPUs and how near each is to each other are 6 KB, as HAMi registers them
INTEGER_MOST = 2**31 - 1  # of PostgreSQL's integer
YEARS = (1970, 9000)


def fitted(text: str | None, most: int) -> str:
    """Cut to its column, and without NUL, which PostgreSQL refuses."""
    return text[:most].replace("\x00", "") if text else ""


def both_ends(text: str | None, most: int) -> str:
    """Cut in its middle: a runtime says first what it wanted to do, and last what came in its way."""
    if not text or len(text) <= most:
        return fitted(text, most)
    half = (most - 3) // 2
    return f"{fitted(text[:half], half)} … {fitted(text[-half:], half)}"


def fitted_words(most: int, *parts: str | None) -> str:
    return ": ".join(part for part in (fitted(part, most) for part in parts) if part)[:most]


def fitted_labels(labels: Mapping[str, str], *, most: int = VALUE_AT_MOST) -> dict[str, str]:
    """What is too long to be a label is left out whole: a part of it might be picked by a selector."""
    if _are_fit(labels, most):
        return dict(labels)
    return {
        key.replace("\x00", ""): value.replace("\x00", "")
        for key, value in labels.items()
        if len(key) <= KEY_AT_MOST and len(value) <= most
    }


def fitted_instant(at: datetime | None) -> datetime | None:
    """None also for the zero of Go's time, the first day of the year 1, and for what no calendar reaches yet."""
    return at if at is not None and YEARS[0] <= at.year < YEARS[1] else None


def _are_fit(labels: Mapping[str, str], most: int) -> bool:
    """As nearly all are: found out without going through them one by one."""
    if not labels:
        return True
    is_short = max(map(len, labels)) <= KEY_AT_MOST and max(map(len, labels.values())) <= most
    return is_short and "\x00" not in "".join(labels) and "\x00" not in "".join(labels.values())


def fitted_count(number: int | None) -> int | None:
    return None if number is None else max(0, min(number, INTEGER_MOST))
