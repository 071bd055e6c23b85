"""Reasons why pods do not run, from apps above. For pages, REST and plans."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from fleet.models import Pod
from wording.reports import EvidenceItem


@dataclass(frozen=True)
class PodReason:
    key: str
    sentence: str
    action: str = ""  # blank: no action needed
    quote: str = ""  # the relevant line in the cluster's own words; blank: none
    is_wrong: bool = True  # False: expected or intended
    title: str = ""
    summary: str = ""
    steps: tuple[str, ...] = ()
    decided_by: str = ""  # the object or requirement that decides; blank: unknown
    evidence: tuple[EvidenceItem, ...] = ()
    said: str = ""  # the message of the quoted line, if no known cause is more exact

    @property
    def trouble(self) -> str:
        """Returns the reason in a few words."""
        return f"{self.title}: {self.said}" if self.said else self.title


ReasonReader = Callable[[Sequence[Pod], datetime], Mapping[str, PodReason]]
READERS: list[ReasonReader] = []
# Readers of further reasons: each gets the reasons so far, and returns replacements.
ReasonRefiner = Callable[[Sequence[Pod], Mapping[str, PodReason], datetime], Mapping[str, PodReason]]
REFINERS: list[ReasonRefiner] = []


def reasons_of(pods: Sequence[Pod], *, now: datetime) -> Mapping[str, PodReason]:
    found: dict[str, PodReason] = {}
    for read in READERS:
        found |= read(pods, now)
    for refine in REFINERS:
        found |= refine(pods, found, now)
    return found
