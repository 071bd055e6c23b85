"""Preflight checks: facts that a person must know before a plan starts. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass

from wording.reports import EvidenceItem, Report, first_items

MOST_NAMED = 200
START_ANYWAY = "The plan may be started. These nodes wait."


@dataclass(frozen=True)
class Check(Report):
    """The result of one preflight check: a blocker or a warning, with its cause and its remedy."""

    code: str
    is_grave: bool = False  # of a warning: shown as red as a blocker
    may_be_overridden: bool = False  # for a blocker: a person may start nevertheless, with a permanent reason
    is_good: bool = False  # for a warning: it confirms that something is in order
    field: str = ""  # field of the draft that causes the check, spelled as in refusals of drafts


def stage_field(index: int, name: str = "") -> str:
    """Returns the path of a field of a stage, such as "stages.1.selector"; without a name, of the stage."""
    return f"stages.{index}.{name}".removesuffix(".")


def each(items: Iterable[tuple[str, str]]) -> tuple[EvidenceItem, ...]:
    """Returns an evidence item for each object and its fact, in order of names, as many as a person reads."""
    return first_items((EvidenceItem(label, value) for label, value in sorted(set(items))), MOST_NAMED)


def listed(label: str, names: Iterable[str]) -> tuple[EvidenceItem, ...]:
    """Returns one evidence item that lists the names, as many as a person reads."""
    ordered = sorted(set(names))
    more = len(ordered) - MOST_NAMED
    text = ", ".join(ordered[:MOST_NAMED])
    return (EvidenceItem(label, f"{text} and {more} more" if more > 0 else text),)
