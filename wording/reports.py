"""The parts of a report: a title, a summary line, evidence as labelled values, and steps."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

LONGEST_TITLE, LONGEST_SUMMARY = 70, 140  # characters
MOST_ITEMS = 20  # of evidence about single objects


@dataclass(frozen=True)
class EvidenceItem:
    label: str
    value: str | int | float
    unit: str = ""  # "s" for seconds; "UTC" for an instant in ISO 8601; blank for text and counts


@dataclass(frozen=True, kw_only=True)
class Report:
    """A result for people. Longer titles and summaries are cut; their full facts belong in the evidence."""

    title: str  # with the name of its object where there is one
    summary: str = ""
    evidence: tuple[EvidenceItem, ...] = ()
    steps: tuple[str, ...] = ()  # what a person does, in order

    @property
    def sentence(self) -> str:
        """Returns title and summary as one text, for histories and files without layout."""
        return sentence_of(self.title, self.summary)

    def __post_init__(self) -> None:
        object.__setattr__(self, "title", clip(self.title, LONGEST_TITLE))
        object.__setattr__(self, "summary", clip(self.summary, LONGEST_SUMMARY))


def sentence_of(title: str, summary: str) -> str:
    return f"{title}. {summary}".rstrip()


def written_report(report: Report) -> dict[str, Any]:
    """Returns the report as rows, files and REST store it."""
    return {
        "title": report.title,
        "summary": report.summary,
        "evidence": [asdict(item) for item in report.evidence],
        "steps": list(report.steps),
    }


def clip(text: str, longest: int) -> str:
    """Returns the text, cut to `longest` characters with an ellipsis."""
    return text if len(text) <= longest else f"{text[: longest - 1].rstrip()}…"


def at_most(items: Iterable[EvidenceItem], most: int = MOST_ITEMS) -> tuple[EvidenceItem, ...]:
    """Returns the first items, and an item with the number of the others."""
    every = tuple(items)
    return every if len(every) <= most else (*every[:most], EvidenceItem("Not listed", len(every) - most))
