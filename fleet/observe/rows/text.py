"""Text and numbers as columns can hold them: a cluster may say anything, and one object must not break a flush."""

from collections.abc import Mapping

VALUE_AT_MOST = 253  # Kubernetes allows 63 in a label's value; a longer one is no label of its
KEY_AT_MOST = 317
ANNOTATION_AT_MOST = 4096
INTEGER_MOST = 2**31 - 1  # of PostgreSQL's integer


def fitted(text: str | None, most: int) -> str:
    """Cut to its column, and without NUL, which PostgreSQL refuses."""
    return text[:most].replace("\x00", "") if text else ""


def fitted_words(most: int, *parts: str | None) -> str:
    return ": ".join(part for part in (fitted(part, most) for part in parts) if part)[:most]


def fitted_labels(labels: Mapping[str, str], *, most: int = VALUE_AT_MOST) -> dict[str, str]:
    """What is too long to be a label is left out whole: a part of it might be picked by a selector."""
    return {
        key.replace("\x00", ""): value.replace("\x00", "")
        for key, value in labels.items()
        if len(key) <= KEY_AT_MOST and len(value) <= most
    }


def fitted_count(number: int | None) -> int | None:
    return None if number is None else max(0, min(number, INTEGER_MOST))
