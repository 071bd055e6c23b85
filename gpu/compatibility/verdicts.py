"""What the matrix answers. Pure."""

from dataclasses import dataclass
from datetime import date
from enum import StrEnum


class Support(StrEnum):
    """The worst first."""

    KNOWN_BAD = "known-bad"  # this very combination is known to fail
    UNSUPPORTED = "unsupported"  # outside what NVIDIA validated or still maintains
    UNKNOWN = "unknown"  # the matrix gives no range, or the cluster does not say; never to be read as supported
    DEPRECATED = "deprecated"  # supported, but not for long
    SUPPORTED = "supported"


ORDER = {answer: place for place, answer in enumerate(Support)}


@dataclass(frozen=True)
class Verdict:
    rule: str  # which question it answers: operator, platform, runtime, driver, …
    subject: str  # what was compared: "Operator 26.3.0, Kubernetes 1.36"
    answer: Support
    sentence: str
    action: str = ""  # blank: there is nothing to do
    source: str = ""  # an address, or repository:path@ref; blank: nothing was compared
    read_on: date | None = None  # when the source said so

    @property
    def place(self) -> tuple[int, str, str]:
        """The worst first."""
        return ORDER[self.answer], self.rule, self.subject
