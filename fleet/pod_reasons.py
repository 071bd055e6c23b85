"""Why pods do not run: what the apps above know of it. Pages, REST and plans read this one."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from fleet.models import Pod


@dataclass(frozen=True)
class PodReason:
    key: str
    sentence: str
    action: str = ""  # blank: nothing has to be done
    said: str = ""  # the line that tells it, in the cluster's own words; blank: none does
    is_wrong: bool = True  # False: it comes by itself, or somebody wants it so
    title: str = ""
    summary: str = ""
    steps: tuple[str, ...] = ()


ReasonReader = Callable[[Sequence[Pod], datetime], Mapping[str, PodReason]]
READERS: list[ReasonReader] = []


def reasons_of(pods: Sequence[Pod], *, now: datetime) -> Mapping[str, PodReason]:
    """By the pod's UID, of those that do not run as they should."""
    found: dict[str, PodReason] = {}
    for read in READERS:
        found |= read(pods, now)
    return found
