"""Whether anything is wrong that a person may see: the one thing that any page asks before it says that nothing is."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from fleet.allocation.tally import tally
from fleet.queries import ClusterRow
from fleet.web.summary import counted_by
from health.inbox.reading import FindingCounts
from health.inbox.seeing import not_heard


@dataclass(frozen=True)
class Trouble:
    open: int  # findings that are confirmed
    confirming: int  # that are not yet
    muted: int  # that nobody is told of for a while
    faulty: int  # GPU nodes with faults, as the fleet counts them
    unseen: Sequence[str]  # clusters that are not live
    heard_at: Mapping[int, datetime | None]  # those by their keys: when each was heard last
    unheard: Sequence[str]  # clusters that are live, and of whose GPUs nothing is heard
    has_clusters: bool

    @property
    def is_calm(self) -> bool:
        """Whether a green word may be said."""
        unsure = self.confirming or self.muted or self.unseen or self.unheard
        return self.has_clusters and not (self.open or self.faulty or unsure)


def trouble_of(counts: FindingCounts, lines: Sequence[ClusterRow], *, now: datetime) -> Trouble:
    """Of what is found and counted in these clusters. Two queries."""
    unseen = [line for line in lines if not line.freshness.is_fresh]
    return Trouble(
        open=counts.open + counts.acknowledged,
        confirming=counts.confirming,
        muted=counts.muted,
        faulty=tally(counted_by(lines)).faulty,
        unseen=[line.cluster.name for line in unseen],
        heard_at={line.cluster.pk: line.freshness.heard_at for line in unseen},
        unheard=_unheard(lines, now=now),
        has_clusters=bool(lines),
    )


def _unheard(lines: Sequence[ClusterRow], *, now: datetime) -> list[str]:
    """By name. One that is not seen is said to be that; one without GPUs has none to be heard."""
    seen = [line for line in lines if line.freshness.is_fresh and any(each.is_gpu_node for each in line.alike)]
    silent = not_heard([line.cluster.pk for line in seen], now=now)
    return [line.cluster.name for line in seen if line.cluster.pk in silent]
