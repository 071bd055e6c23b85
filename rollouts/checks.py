"""Preflight checks: facts that a person must know before a plan starts. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass

MOST_NAMED = 200


@dataclass(frozen=True)
class Check:
    """The result of one preflight check: a blocker or a warning, with its cause and its remedy."""

    code: str
    sentence: str
    fix: str = ""
    is_grave: bool = False  # of a warning: shown as red as a blocker
    may_be_overridden: bool = False  # of a blocker: a person may start all the same, with a reason that is kept
    is_good: bool = False  # of a warning: it says what is in order, where somebody would ask
    field: str = ""  # of the draft: where what is the matter is written, as a refusal of the draft names it
    about: tuple[str, ...] = ()  # each that the sentence is about, where it names only the first


def stage_field(index: int, name: str = "") -> str:
    """Returns the path of a field of a stage, such as "stages.1.selector"; without a name, of the stage."""
    return f"stages.{index}.{name}".removesuffix(".")


def each(lines: Iterable[str]) -> tuple[str, ...]:
    """Returns the first names, as many as a person reads."""
    ordered = sorted(set(lines))
    more = len(ordered) - MOST_NAMED
    return (*ordered[:MOST_NAMED], f"and {more} more") if more > 0 else tuple(ordered)
