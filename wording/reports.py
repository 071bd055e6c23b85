"""The parts of a report: a title, a summary line, evidence as labelled values, causes and steps."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from wording.instants import to_the_second

LONGEST_TITLE, LONGEST_SUMMARY = 70, 140  # characters
MOST_ITEMS = 20  # of evidence about single objects
UTC = "UTC"  # the unit of an instant in ISO 8601


@dataclass(frozen=True)
class EvidenceItem:
    label: str
    value: str | int | float
    unit: str = ""  # "s" for seconds; "UTC" for an instant in ISO 8601; blank for text and counts

    @property
    def text(self) -> str:
        """Returns the value with its unit: "84 °C", "2026-11-30 08:00:00 UTC"."""
        if self.unit == UTC:
            return to_the_second(datetime.fromisoformat(str(self.value)))
        value = f"{self.value:.6g}" if isinstance(self.value, float) else str(self.value)
        return f"{value} {self.unit}".rstrip()


@dataclass(frozen=True, kw_only=True)
class Report:
    """A result for people. Longer titles and summaries are cut; their full facts belong in the evidence."""

    title: str  # with the name of its object where there is one
    summary: str = ""
    evidence: tuple[EvidenceItem, ...] = ()
    causes: tuple[str, ...] = ()  # probable causes, the most probable first
    steps: tuple[str, ...] = ()  # recommended action, in order

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


def fit(template: str, *names: object, longest: int = LONGEST_TITLE) -> str:
    """Returns the template with names for each `{}`. Long names are cut in the middle, so that the text fits."""
    texts = [str(name) for name in names]
    room = longest - len(template.replace("{}", ""))
    return template.format(*(_cut(text, share) for text, share in zip(texts, shares_of(texts, room), strict=True)))


def shares_of(texts: Sequence[str], room: int, *, least: int = 3) -> list[int]:
    """Returns how many characters each text may have, so that all fit. What short ones leave is for long ones."""
    shares: dict[int, int] = {}
    for place in sorted(range(len(texts)), key=lambda place: len(texts[place])):
        shares[place] = min(len(texts[place]), max(least, room // (len(texts) - len(shares))))
        room -= shares[place]
    return [shares[place] for place in range(len(texts))]


def instant(label: str, at: datetime) -> EvidenceItem:
    return EvidenceItem(label, at.isoformat(), UTC)


def first_items(items: Iterable[EvidenceItem], most: int = MOST_ITEMS) -> tuple[EvidenceItem, ...]:
    """Returns the first items, and an item with the number of the others."""
    every = tuple(items)
    return every if len(every) <= most else (*every[:most], EvidenceItem("Not listed", len(every) - most))


def _cut(text: str, longest: int) -> str:
    if len(text) <= longest:
        return text
    head = longest // 2
    return f"{text[:head]}…{text[len(text) - (longest - head - 1) :]}"
