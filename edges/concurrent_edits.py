"""Protection against lost updates: a form never silently overwrites a change made since it was opened.

The form carries the mark of the row it shows. The write compares that mark under the row's lock.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from edges.digests import digest
from edges.transition_errors import LostRace

LENGTH = 16  # characters of a mark
NONE = "none"  # the mark of a row that does not exist
ANYWAY = "To overwrite the change, save again."


def mark_of(row: Any, names: Iterable[str]) -> str:
    """Returns the mark of a row over the fields in `names`. The mark changes with each of these fields."""
    return digest([str(getattr(row, name)) for name in names])[:LENGTH] if row else NONE


def refuse_unseen(
    row: Any, names: Iterable[str], *, was: str, to: Mapping[str, Any], labels: Mapping[str, str] | None = None
) -> None:
    """Refuses a write based on an outdated form.

    `was` is the mark in the form; when it is blank, only the fields in `to` are written. `labels` names the fields.

    :raises LostRace: when the row changed, with the current values of the fields that differ
    """
    if was in {"", mark := mark_of(row, names)}:
        return
    if NONE in {was, mark}:
        raise LostRace(f"Somebody {'added' if was == NONE else 'removed'} it after you opened this form. {ANYWAY}")
    current = as_text({name: getattr(row, name) for name, value in to.items() if getattr(row, name) != value}, labels)
    sentence = f" Current values: {current}." if current else ""
    raise LostRace(f"Somebody changed it after you opened this form.{sentence} {ANYWAY}")


def as_text(values: Mapping[str, Any], labels: Mapping[str, str] | None = None) -> str:
    """Returns fields with their values, as "secret env:KEY, switched on no"."""
    return ", ".join(f"{_label_of(name, labels or {})} {_as_text(value)}" for name, value in values.items())


def _label_of(name: str, labels: Mapping[str, str]) -> str:
    return labels.get(name, name.replace("_", " "))


def _as_text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "empty" if value in (None, "") else f"{value}"
