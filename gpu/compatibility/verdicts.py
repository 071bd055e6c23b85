"""The verdicts of the matrix. Pure."""

from dataclasses import dataclass
from datetime import date
from enum import StrEnum


class Support(StrEnum):
    """The degree of support, the worst first."""

    KNOWN_BAD = "known-bad"  # this exact combination is known to fail
    UNSUPPORTED = "unsupported"  # outside what NVIDIA validated or still maintains
    UNKNOWN = "unknown"  # no range in the matrix, or no report from the cluster; never supported
    DEPRECATED = "deprecated"  # supported, but ends soon
    SUPPORTED = "supported"


ORDER = {answer: rank for rank, answer in enumerate(Support)}


@dataclass(frozen=True)
class Verdict:
    rule: str  # the key of its module: operator, platform, runtime, driver, …
    subject: str  # the compared items: "Operator 26.3.0, Kubernetes 1.36"
    answer: Support
    sentence: str
    action: str = ""  # blank: no action needed
    source: str = ""  # an address, or repository:path@ref; blank: no comparison
    read_on: date | None = None  # the source's date

    @property
    def place(self) -> tuple[int, str, str]:
        """Returns the sort key, the worst first."""
        return ORDER[self.answer], self.rule, self.subject
