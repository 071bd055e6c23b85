"""What is known of the nodes of a frame beside it."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any, Protocol

from django.db.models import Max

from fleet.models import Cluster, Node, NodeEvent, Pod, Pool
from gpu.resources import Layout, whole_gpus
from health.evaluation.gpu_resets import resets_of
from health.evaluation.xid_repeats import XidsFound, xids_found
from health.models import Finding
from health.rules.gpus import GPU_RULES
from health.rules.gpus.resets import WITHIN
from health.telemetry.snapshot import GpuDevice

AT_ONCE = 500  # names in one query
DAY = timedelta(days=1)
OF_NODE = ("id", "uid", "name", "upgrade_state", "mig_config_state", "gpu_expected", "gpu_vendor", "booted_at")


class Around(Protocol):
    """What is known of the nodes of a frame beside it: from rows now, or from what is stored of the past."""

    @property
    def nodes(self) -> Mapping[str, Mapping[str, Any]]:
        """By its name what `_rows` has of each node that is asked for."""

    @property
    def of_one_job(self) -> Collection[str]:
        """The names of nodes of which one pod has every board that the frame has."""

    @property
    def xids_found(self) -> XidsFound:
        """How often which Xids were found before."""

    @property
    def resets(self) -> Counter[tuple[str, int]]:
        """By the node's UID and the GPU's index how often that was reset within a day."""

    @property
    def driver_changed(self) -> Mapping[str, datetime]:
        """By the node's UID when its driver last changed within a day."""

    @property
    def classes(self) -> Mapping[int, frozenset[str]]:
        """By the node's key the workload classes of its pools."""


@dataclass
class RowsAround:
    """As the rows have it now, of the suspects' nodes."""

    cluster: Cluster
    devices: Sequence[GpuDevice]
    suspects: frozenset[int]
    now: datetime

    @cached_property
    def nodes(self) -> Mapping[str, dict[str, Any]]:
        return _rows(self.cluster, {self.devices[place].node_name for place in self.suspects})

    @cached_property
    def of_findings(self) -> Mapping[str, dict[str, Any]]:
        keys = [rule.key for rule in GPU_RULES]
        waiting = Finding.objects.filter(cluster=self.cluster, rule__in=keys, resolved_at=None, node__isnull=False)
        return _rows(self.cluster, set(waiting.values_list("node__name", flat=True)))

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
    """The workload classes of each node's pools."""
    found: dict[int, frozenset[str]] = {}
    members = Pool.objects.filter(cluster=cluster, nodes__in=nodes).values_list("nodes", "workload_class")
    for node, workload_class in members:
        found[node] = found.get(node, frozenset()) | {workload_class}
    return found


def _rows(cluster: Cluster, names: Collection[str]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    wanted = sorted(names)
    for start in range(0, len(wanted), AT_ONCE):
        rows = Node.objects.filter(cluster=cluster, name__in=wanted[start : start + AT_ONCE]).order_by()
        found |= {row["name"]: dict(row) for row in rows.values(*OF_NODE)}
    return found
