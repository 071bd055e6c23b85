"""How often an Xid was found before, for the workflows that go by that: on its GPU, its node, and other GPUs.

Each finding says of itself when it had which (`had` of its evidence): it may have opened again for another one, or be
of a worse one by now.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from datetime import datetime, timedelta
from typing import NamedTuple

from django.db.models import Q

from fleet.models import Cluster
from gpu.xids import COUNTED_WITHIN, WORKFLOWS
from health.models import Finding
from health.rules.gpus.xid import LastXid

TOGETHER = timedelta(minutes=10)
OF_NODES = frozenset(row.number for row in WORKFLOWS if row.is_of_node)


class XidFound(NamedTuple):
    number: int
    node: int | None
    gpu_uuid: str
    at: datetime
    is_open: bool = False


class XidsFound:
    """Those of a cluster, each within the time that its workflow goes by, and once however many findings say it."""

    def __init__(self, found: Iterable[XidFound] = (), *, now: datetime | None = None) -> None:
        self.now = now  # None: nothing is known of before
        self._of_nodes: dict[tuple[int, int | None], set[datetime]] = defaultdict(set)
        self._of_gpus: dict[tuple[int, str], set[datetime]] = defaultdict(set)
        self._open: set[tuple[int, str]] = set()
        for one in found:
            if one.is_open:
                self._open.add((one.number, one.gpu_uuid))
            if now is not None and one.at >= now - COUNTED_WITHIN[one.number]:
                self._of_nodes[one.number, one.node].add(one.at)
                self._of_gpus[one.number, one.gpu_uuid].add(one.at)
        self._times: dict[int, Counter[str]] = defaultdict(Counter)
        for (number, uuid), instants in self._of_gpus.items():
            self._times[number][uuid] = len(instants)

    def again(self, node: int, gpu_uuid: str) -> Mapping[int, int]:
        """By number how often it was written: this time, too, once a finding of it is."""
        return {number: self._again(number, node, gpu_uuid) for number in COUNTED_WITHIN} if self.now else {}

    def _again(self, number: int, node: int, gpu_uuid: str) -> int:
        return occasions(self._of_nodes[number, node]) if number in OF_NODES else self._times[number][gpu_uuid]

    def had(self, gpu_uuid: str) -> Mapping[int, Collection[datetime]]:
        """By number when."""
        those = ((number, sorted(self._of_gpus[number, gpu_uuid])) for number in COUNTED_WITHIN)
        return {number: instants for number, instants in those if instants}

    def new(self, gpu_uuid: str) -> frozenset[int]:
        """The numbers of which one that is there now is not written yet."""
        return frozenset(number for number in COUNTED_WITHIN if self.now and (number, gpu_uuid) not in self._open)

    def once_more(self, node: int, gpu_uuid: str) -> frozenset[int]:
        """Of those the ones that did not begin with another GPU of its node."""
        return frozenset(number for number in self.new(gpu_uuid) if not self._has_begun(number, node))

    def _has_begun(self, number: int, node: int) -> bool:
        found = self._of_nodes[number, node]
        return number in OF_NODES and self.now is not None and occasions({*found, self.now}) == occasions(found)

    def elsewhere(self, gpu_uuid: str) -> Mapping[int, int]:
        """By number the most often that any other GPU had it."""
        first_two = {number: self._times[number].most_common(2) for number in COUNTED_WITHIN}
        return {
            number: next((times for uuid, times in most if uuid != gpu_uuid), 0) for number, most in first_two.items()
        }


def occasions(found: Collection[datetime]) -> int:
    """Of several GPUs of a node: what began together is one trouble."""
    number, began = 0, None
    for at in sorted(found):
        if began is None or at - began > TOGETHER:
            number, began = number + 1, at
    return number


def xids_found(cluster: Cluster, *, now: datetime) -> XidsFound:
    """One query."""
    lately = Q(resolved_at=None) | Q(resolved_at__gte=now - max(COUNTED_WITHIN.values()))
    is_counted = Q(evidence__xid__in=list(COUNTED_WITHIN)) | Q(evidence__had__isnull=False)
    rows = Finding.objects.filter(lately, is_counted, cluster=cluster, rule=LastXid.key).order_by()
    told = rows.values_list("evidence__xid", "evidence__had", "node", "gpu_uuid", "since", "resolved_at")
    found = (
        XidFound(number, node, uuid, at, is_open=resolved_at is None and number == xid)
        for xid, had, node, uuid, since, resolved_at in told
        for number, at in _read(had, xid, since)
    )
    return XidsFound(found, now=now)


def _read(had: Mapping[str, Iterable[str]] | None, xid: int, since: datetime) -> Iterable[tuple[int, datetime]]:
    """One that does not say when had what it is of, when it began."""
    if not had:
        return [(xid, since)]
    each = ((int(number), datetime.fromisoformat(at)) for number, instants in had.items() for at in instants)
    return [(number, at) for number, at in each if number in COUNTED_WITHIN]
