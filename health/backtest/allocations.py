"""Pods that had many GPUs of a node, and when, as far as recorded."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from django.db.models import Min, Q

from fleet.models import Cluster, PodPlacement
from gpu.resources import Layout, count
from health.telemetry.peers import FEWEST

AT_ONCE = 500  # rows
BY_NAME = Layout()  # how GPUs were shared then is not kept


@dataclass(frozen=True)
class PastAllocation:
    since: datetime
    until: datetime | None
    gpus: int


@dataclass(frozen=True)
class PastAllocations:
    by_node: Mapping[str, Sequence[PastAllocation]] = field(default_factory=dict)  # by its UID, of pods with many
    known_from: datetime | None = None  # None: nothing was written down

    def most(self, uid: str, at: datetime) -> int:
        """Returns the most GPUs of this node that one pod had, if they were many."""
        there = (each for each in self.by_node.get(uid, ()) if each.since <= at)
        return max((each.gpus for each in there if each.until is None or at < each.until), default=0)


def past_allocations(cluster: Cluster, *, since: datetime) -> PastAllocations:
    """Loads allocations with two queries. Pods with fewer GPUs than a peer comparison needs are left out."""
    rows = PodPlacement.objects.filter(cluster=cluster).order_by()
    lasting = rows.filter(Q(until=None) | Q(until__gt=since)).values_list("node_uid", "since", "until", "resources")
    by_node: dict[str, list[PastAllocation]] = {}
    for uid, begun, until, resources in lasting.iterator(chunk_size=AT_ONCE):
        gpus = count(resources, BY_NAME).whole or 0
        if gpus >= FEWEST:
            by_node.setdefault(uid, []).append(PastAllocation(begun, until, gpus))
    return PastAllocations(by_node, rows.aggregate(first=Min("since"))["first"])
