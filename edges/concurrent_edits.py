"""A form writes all of a row as it was when the form was opened: what somebody else changed since is not undone unseen.

The form carries the mark of what it shows, and the write is guarded by it, under the lock of the row.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from edges.digests import digest
from edges.transition_errors import LostRace

LENGTH = 16  # of a mark
NONE = "none"  # the mark of a row that is not there
ANYWAY = "To save what is here all the same, save it again."


def mark_of(row: Any, names: Iterable[str]) -> str:
    """`names`: of all that a person writes of it. With another mark it was written since."""
    return digest([str(getattr(row, name)) for name in names])[:LENGTH] if row else NONE


def refuse_unseen(
    row: Any, names: Iterable[str], *, was: str, to: Mapping[str, Any], words: Mapping[str, str] | None = None
) -> None:
    """`was`: its mark when all of it was seen; blank: what is not in `to` is not to change. `words`: for names.

    :raises LostRace: saying what it says by now where somebody is about to write something else
    """
    if was in {"", mark := mark_of(row, names)}:
        return
    if NONE in {was, mark}:
        raise LostRace(f"Somebody {'added' if was == NONE else 'removed'} it since you opened this form. {ANYWAY}")
    other = [name for name, value in to.items() if getattr(row, name) != value]
    said = ", ".join(f"{_called(name, words or {})} {_spelt(getattr(row, name))}" for name in other)
    by_now = f" Where you would change it, it says by now: {said}." if said else ""
    raise LostRace(f"Somebody changed it since you opened this form.{by_now} {ANYWAY}")


def _called(name: str, words: Mapping[str, str]) -> str:
    return words.get(name, name.replace("_", " "))


def _spelt(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "nothing" if value in (None, "") else f"{value}"
