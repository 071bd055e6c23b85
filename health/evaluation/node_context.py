"""Facts about the nodes of a telemetry snapshot from other sources."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any, NamedTuple, Protocol

from django.db.models import Max, Q

from fleet.history.lines import RESET
from fleet.models import Cluster, Node, NodeEvent, Pod, Pool
from gpu.resources import Layout, whole_gpus
from gpu.xids import COUNTED_WITHIN, WORKFLOWS
from health.models import Finding
from health.rules.gpus import GPU_RULES
from health.rules.gpus.resets import WITHIN
from health.rules.gpus.xid import LastXid
from health.telemetry.snapshot import GpuDevice


class GpuReset(NamedTuple):
    node_uid: str
    gpu: int  # its index
    at: datetime


def resets_of(cluster: Cluster, node_uids: Collection[str], *, since: datetime, until: datetime) -> list[GpuReset]:
    """Returns GPU resets, with one query. Resets of several GPUs of a node at once are left out.

    They are caused by the node or its driver.
    """
    events = NodeEvent.objects.filter(cluster=cluster, node_uid__in=node_uids, at__gt=since, at__lte=until, kind=RESET)
    told = [
        GpuReset(uid, detail["gpu"], at)
        for uid, at, detail in events.order_by().values_list("node_uid", "at", "detail")
    ]
    together = Counter((one.node_uid, one.at) for one in told)
    return [one for one in told if together[one.node_uid, one.at] == 1]


TOGETHER = timedelta(minutes=10)
OF_NODES = frozenset(number for flow in WORKFLOWS if flow.is_of_node for number in flow.numbers)


class XidFound(NamedTuple):
    number: int
    node: int | None
    gpu_uuid: str
    at: datetime
    is_open: bool = False


class XidsFound:
    """The Xids of a cluster, each within its workflow's time, and once however many findings report it."""

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
        """Returns how often each Xid number was recorded, including this time once it has a finding."""
        return {number: self._again(number, node, gpu_uuid) for number in COUNTED_WITHIN} if self.now else {}

    def _again(self, number: int, node: int, gpu_uuid: str) -> int:
        return occasions(self._of_nodes[number, node]) if number in OF_NODES else self._times[number][gpu_uuid]

    def had(self, gpu_uuid: str) -> Mapping[int, Collection[datetime]]:
        those = ((number, sorted(self._of_gpus[number, gpu_uuid])) for number in COUNTED_WITHIN)
        return {number: instants for number, instants in those if instants}

    def new(self, gpu_uuid: str) -> frozenset[int]:
        """Returns the current Xid numbers that are not recorded yet."""
        return frozenset(number for number in COUNTED_WITHIN if self.now and (number, gpu_uuid) not in self._open)

    def once_more(self, node: int, gpu_uuid: str) -> frozenset[int]:
        """Returns the new Xids that did not start on another GPU of the node."""
        return frozenset(number for number in self.new(gpu_uuid) if not self._has_begun(number, node))

    def _has_begun(self, number: int, node: int) -> bool:
        found = self._of_nodes[number, node]
        return number in OF_NODES and self.now is not None and occasions({*found, self.now}) == occasions(found)

    def elsewhere(self, gpu_uuid: str) -> Mapping[int, int]:
        """Returns, per Xid number, the highest count on any other GPU."""
        first_two = {number: self._times[number].most_common(2) for number in COUNTED_WITHIN}
        return {
            number: next((times for uuid, times in most if uuid != gpu_uuid), 0) for number, most in first_two.items()
        }


def occasions(found: Collection[datetime]) -> int:
    """Returns the number of incidents. Xids of several GPUs of a node that began together are one incident."""
    number, began = 0, None
    for at in sorted(found):
        if began is None or at - began > TOGETHER:
            number, began = number + 1, at
    return number


def xids_found(cluster: Cluster, *, now: datetime) -> XidsFound:
    """Loads the Xids with one query."""
    lately = Q(resolved_at=None) | Q(resolved_at__gte=now - max(COUNTED_WITHIN.values()))
    is_counted = Q(facts__xid__in=list(COUNTED_WITHIN)) | Q(facts__had__isnull=False)
    rows = Finding.objects.filter(lately, is_counted, cluster=cluster, rule=LastXid.key).order_by()
    told = rows.values_list("facts__xid", "facts__had", "node", "gpu_uuid", "since", "resolved_at")
    found = (
        XidFound(number, node, uuid, at, is_open=resolved_at is None and number == xid)
        for xid, had, node, uuid, since, resolved_at in told
        for number, at in _xids_of_facts(had, xid, since)
    )
    return XidsFound(found, now=now)


def _xids_of_facts(
    had: Mapping[str, Iterable[str]] | None, xid: int, since: datetime
) -> Iterable[tuple[int, datetime]]:
    """Yields Xid numbers and times from facts. Facts without times stand for their own Xid, when it began."""
    if not had:
        return [(xid, since)]
    each = ((int(number), datetime.fromisoformat(at)) for number, instants in had.items() for at in instants)
    return [(number, at) for number, at in each if number in COUNTED_WITHIN]


AT_ONCE = 500  # names in one query
DAY = timedelta(days=1)
OF_NODE = ("id", "uid", "name", "upgrade_state", "mig_config_state", "gpu_expected", "gpu_vendor", "booted_at")


class Around(Protocol):
    """Facts about the nodes of a snapshot, from current rows or from stored history."""

    @property
    def nodes(self) -> Mapping[str, Mapping[str, Any]]:
        """Returns the row of each requested node by name."""

    @property
    def of_one_job(self) -> Collection[str]:
        """Returns the names of nodes where one pod has every board of the snapshot."""

    @property
    def xids_found(self) -> XidsFound:
        """Returns earlier Xids and how often they occurred."""

    @property
    def resets(self) -> Counter[tuple[str, int]]:
        """Returns the number of resets within a day by node UID and GPU index."""

    @property
    def driver_changed(self) -> Mapping[str, datetime]:
        """Returns by node UID the last driver change within a day."""

    @property
    def classes(self) -> Mapping[int, frozenset[str]]:
        """Returns the workload classes of a node's pools by the node's key."""


@dataclass
class RowsAround:
    """Facts from the current rows of the suspects' nodes."""

    cluster: Cluster
    devices: Sequence[GpuDevice]
    suspects: frozenset[int]
    now: datetime

    @cached_property
    def nodes(self) -> Mapping[str, dict[str, Any]]:
        return _load_node_rows(self.cluster, {self.devices[place].node_name for place in self.suspects})

    @cached_property
    def of_findings(self) -> Mapping[str, dict[str, Any]]:
        keys = [rule.key for rule in GPU_RULES]
        waiting = Finding.objects.filter(cluster=self.cluster, rule__in=keys, resolved_at=None, node__isnull=False)
        return _load_node_rows(self.cluster, set(waiting.values_list("node__name", flat=True)))

    @cached_property
    def of_one_job(self) -> frozenset[str]:
        boards = Counter(device.node_name for device in self.devices if not device.gi_id)
        names = list(self.nodes)
        pods = Pod.objects.filter(cluster=self.cluster, node_name__in=names, gpus__gt=0, operand="").not_done()
        held = pods.exclude(node=None).order_by().values_list("node_name", "resources", "node__layout")
        return frozenset(name for name, of, layout in held if whole_gpus(of, Layout.read(layout)) >= boards[name])

    @cached_property
    def xids_found(self) -> XidsFound:
        return xids_found(self.cluster, now=self.now)

    @cached_property
    def resets(self) -> Counter[tuple[str, int]]:
        uids = [row["uid"] for row in self.nodes.values()]
        found = resets_of(self.cluster, uids, since=self.now - WITHIN, until=self.now)
        return Counter((one.node_uid, one.gpu) for one in found)

    @cached_property
    def driver_changed(self) -> Mapping[str, datetime]:
        events = NodeEvent.objects.filter(cluster=self.cluster, at__gte=self.now - DAY).driver_changes()
        uids = [row["uid"] for row in self.nodes.values()]
        return dict(events.filter(node_uid__in=uids).order_by().values_list("node_uid").annotate(last=Max("at")))

    @cached_property
    def classes(self) -> Mapping[int, frozenset[str]]:
        return classes_of(self.cluster, [row["id"] for row in self.nodes.values()])


def classes_of(cluster: Cluster, nodes: Collection[int]) -> dict[int, frozenset[str]]:
    found: dict[int, frozenset[str]] = {}
    members = Pool.objects.filter(cluster=cluster, nodes__in=nodes).values_list("nodes", "workload_class")
    for node, workload_class in members:
        found[node] = found.get(node, frozenset()) | {workload_class}
    return found


def _load_node_rows(cluster: Cluster, names: Collection[str]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    wanted = sorted(names)
    for start in range(0, len(wanted), AT_ONCE):
        rows = Node.objects.filter(cluster=cluster, name__in=wanted[start : start + AT_ONCE]).order_by()
        found |= {row["name"]: dict(row) for row in rows.values(*OF_NODE)}
    return found
