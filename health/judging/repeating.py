"""How often an Xid was found before, for the workflows that go by that: on its GPU, its node, and other GPUs."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import NamedTuple

from django.db.models import Q

from fleet.models import Cluster
from health.models import Finding
from health.rules.gpus.xid import LastXid
from health.rules.gpus.xids import COUNTED_WITHIN, WORKFLOWS

TOGETHER = timedelta(minutes=10)
OF_NODES = frozenset(row.number for row in WORKFLOWS if row.is_of_node)


class XidFound(NamedTuple):
    """A finding, however often it opened again."""

    number: int
    node: int | None
    gpu_uuid: str
    since: datetime  # this time
    times: int
    is_open: bool = False


class XidsFound:
    """Those of a cluster, each within the time that its workflow goes by."""

    def __init__(self, found: Iterable[XidFound] = (), *, now: datetime | None = None) -> None:
        self.now = now  # None: nothing is known of before
        self._of_nodes: dict[tuple[int, int | None], list[tuple[datetime, int]]] = defaultdict(list)
        self._of_gpus: dict[int, Counter[str]] = defaultdict(Counter)
        self._open: set[tuple[int, str]] = set()
        for one in found:
            self._of_nodes[one.number, one.node].append((one.since, one.times))
            self._of_gpus[one.number][one.gpu_uuid] += one.times
            if one.is_open:
                self._open.add((one.number, one.gpu_uuid))

    def again(self, node: int, gpu_uuid: str) -> Mapping[int, int]:
        """By number how often it was written: this time, too, once a finding of it is."""
        return {number: self._again(number, node, gpu_uuid) for number in COUNTED_WITHIN} if self.now else {}

    def _again(self, number: int, node: int, gpu_uuid: str) -> int:
        return occasions(self._of_nodes[number, node]) if number in OF_NODES else self._of_gpus[number][gpu_uuid]

    def once_more(self, node: int, gpu_uuid: str) -> frozenset[int]:
        """The numbers of which one that is there now is not among those."""
        return frozenset(
            number
            for number in COUNTED_WITHIN
            if self.now and (number, gpu_uuid) not in self._open and not self._has_begun(number, node, self.now)
        )

    def _has_begun(self, number: int, node: int, now: datetime) -> bool:
        """With another GPU of its node."""
        found = self._of_nodes[number, node] if number in OF_NODES else []
        return occasions([*found, (now, 1)]) == occasions(found)

    def elsewhere(self, gpu_uuid: str) -> Mapping[int, int]:
        """By number the most often that any other GPU had it."""
        first_two = {number: self._of_gpus[number].most_common(2) for number in COUNTED_WITHIN}
        return {
            number: next((times for uuid, times in most if uuid != gpu_uuid), 0) for number, most in first_two.items()
        }


def occasions(found: Iterable[tuple[datetime, int]]) -> int:
    """Of several GPUs of a node: what began together is one trouble. Each with since when, and how often it was."""
    number, began, most = 0, None, 0
    for since, times in sorted(found):
        if began is None or since - began > TOGETHER:
            number, began, most = number + most, since, 0
        most = max(most, times)
    return number + most


def xids_found(cluster: Cluster, *, now: datetime) -> XidsFound:
    """One query."""
    lately = Q()
    for number, within in COUNTED_WITHIN.items():
        lately |= Q(evidence__xid=number, since__gte=now - within)
    rows = Finding.objects.filter(lately, cluster=cluster, rule=LastXid.key).order_by()
    told = rows.values_list("evidence__xid", "node", "gpu_uuid", "since", "times", "resolved_at", "resolved_because")
    # What went on with its rule's trial did so in a row of its own.
    found = (
        XidFound(number, node, uuid, since, times - bool(because), resolved_at is None)
        for number, node, uuid, since, times, resolved_at, because in told
    )
    return XidsFound(found, now=now)
