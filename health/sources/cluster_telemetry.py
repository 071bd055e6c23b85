"""The boards of whole clusters from their newest snapshots, in columns. Only displayed boards become readings.

Table pages and the map need one or two metrics of 40,000 boards. So the only objects here are the list of boards, which
is cached while the order of a cluster's devices stays the same.
"""

import math
from array import array
from collections import OrderedDict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from threading import Lock

from fleet.models import Cluster, ExporterRound
from health.announce import number_of, telemetry_group
from health.models import TelemetrySource
from health.sources import snapshots
from health.sources.node_telemetry import REDIS_AWAY, source_state
from health.sources.readings import BY_SLICE, NOT_UNDER_MIG, MetricReading, ReadingState, Standing, read_metric
from health.sources.snapshots import MOST_ORDERS, SnapshotsUnavailable, StoredSnapshot
from health.telemetry.base import DeviceXid
from health.telemetry.metrics import exportable
from health.telemetry.snapshot import NEVER, GpuDevice, no_values


@dataclass(frozen=True)
class SnapshotBoard:
    """A board in a snapshot, with its own series or those of its slices."""

    uuid: str
    index: int | None
    product: str
    place: int  # index in the frame of its device, or of its first slice, which has the same GPU values
    slices: int = 0
    is_own: bool = True  # False: only its slices have series

    @property
    def is_mig(self) -> bool:
        return bool(self.slices)

    def has_value(self, key: str) -> bool:
        return not (self.is_mig and (key in NOT_UNDER_MIG or (key in BY_SLICE and not self.is_own)))


@dataclass(frozen=True)
class Boards:
    """All boards of a snapshot, and the position of each node's first board."""

    every: Sequence[SnapshotBoard] = ()
    by_node: Mapping[str, Sequence[int]] = field(default_factory=dict)  # places in `every`, in the frame's order
    by_uuid: Mapping[tuple[str, str], int] = field(default_factory=dict)  # by node, too: two may claim one
    by_index: Mapping[tuple[str, int | None], int] = field(default_factory=dict)
    has_slices: bool = False

    def has_slices_on(self, node: str) -> bool:
        """Returns whether any board of this node has slices. Then a board without slices is whole."""
        return any(self.every[at].is_mig for at in self.by_node.get(node, ()))

    def find(self, node: str, uuid: str, index: int) -> int | None:
        """Returns the position of a GPU by its UUID if known, else by its index."""
        return self.by_uuid.get((node, uuid)) if uuid else self.by_index.get((node, index))


@dataclass(frozen=True)
class ClusterTelemetry:
    cluster: int
    standing: Standing
    trouble: str = ""  # why the stored snapshot cannot be read; blank: it can
    kept: StoredSnapshot | None = None
    boards: Boards = field(default_factory=Boards)
    _nodes_with: dict[str, frozenset[str]] = field(default_factory=dict, compare=False)  # by metric, once asked

    def read(self, key: str, board: int | None, *, node: str, vendor: str, now: float) -> MetricReading:
        """Returns the reading of a board of `boards.every`; None stands for a board outside the snapshot.

        `node` and `vendor` are those of the board.
        """
        standing = self.standing.of_exporter({key} if self.is_exported(key, node, vendor) else ())
        if board is None or self.kept is None:
            return read_metric(key, math.nan, math.nan, standing, now=now)
        told, column = self.boards.every[board], self.kept.snapshot.columns.get(key)
        if not told.has_value(key):
            return MetricReading(ReadingState.NOT_APPLICABLE)
        value, at = (column.values[told.place], column.times[told.place]) if column else (math.nan, math.nan)
        return read_metric(key, value, at, standing, now=now, is_mig=told.is_mig)

    def is_exported(self, key: str, node: str, vendor: str) -> bool:
        """Returns whether the node's exporter has the metric.

        An exporter without samples may have its vendor's metrics.
        """
        if self.kept is None or node not in self.boards.by_node:
            return key in self.standing.exported and key in exportable(vendor)
        if key not in self._nodes_with:
            self._nodes_with[key] = self.kept.snapshot.nodes_with(key)
        return node in self._nodes_with[key]

    def values(self, key: str) -> "array[float]":
        """Returns the value of each board; NaN if it never had one."""
        return self._board_column(key, 0)

    def times(self, key: str) -> "array[float]":
        """Returns the sample time of each board in seconds since the epoch; NaN if it never had one."""
        return self._board_column(key, 1)

    def _board_column(self, key: str, which: int) -> "array[float]":
        column = self.kept.snapshot.columns.get(key) if self.kept else None
        if column is None:
            return no_values(len(self.boards.every))
        said = (column.values, column.times)[which]
        if not self.boards.has_slices:  # boards are devices
            return said
        return array("d", (said[board.place] if board.has_value(key) else NEVER for board in self.boards.every))

    def newest(self) -> "array[float]":
        """Returns the time of each board's newest sample of the loaded metrics; NaN if it never had one."""
        newest = no_values(len(self.boards.every))
        for key in self.kept.snapshot.columns if self.kept else ():
            newest = array("d", map(_later, newest, self.times(key)))
        return newest

    def xid_words(self, board: int, xid: float) -> str:
        """Returns the exporter's text for this Xid; empty if it has none."""
        told = self.kept.xids.get(self._key(board)) if self.kept else None
        return told.words if isinstance(told, DeviceXid) and told.xid == xid else ""

    def _key(self, board: int) -> tuple[str, str]:
        return self.kept.snapshot.devices[self.boards.every[board].place].key if self.kept else ("", "")


def _later(one: float, other: float) -> float:
    """Returns the later time. NaN is no time."""
    return one if other != other or one >= other else other


def telemetry_of_clusters(
    cluster_ids: Collection[int], metrics: Collection[str], *, now: datetime
) -> dict[int, ClusterTelemetry]:
    """Returns these metrics by cluster. Two queries, and two Redis requests for each cluster with a source."""
    return {
        key: _telemetry_of_cluster(key, standing, metrics)
        for key, standing in standings_of(cluster_ids, now=now).items()
    }


def standings_of(cluster_ids: Collection[int], *, now: datetime) -> dict[int, Standing]:
    """Returns the source's state by cluster, with two queries."""
    sources = {row.cluster_id: row for row in TelemetrySource.objects.filter(cluster__in=cluster_ids)}
    rounds = {row.cluster_id: row for row in ExporterRound.objects.filter(cluster__in=cluster_ids)}
    return {key: source_state(sources.get(key), rounds.get(key), now=now) for key in cluster_ids}


def _telemetry_of_cluster(cluster_id: int, standing: Standing, metrics: Collection[str]) -> ClusterTelemetry:
    if not standing.has_source:
        return ClusterTelemetry(cluster_id, standing)
    try:
        kept = snapshots.newest(cluster_id, metrics)
    except SnapshotsUnavailable as error:
        return ClusterTelemetry(
            cluster_id, replace(standing, is_silent=True, silent_since=None), REDIS_AWAY.format(error)
        )
    if kept is None:
        return ClusterTelemetry(cluster_id, standing)
    if not standing.exported:
        standing = replace(standing, exported=kept.exported)
    return ClusterTelemetry(cluster_id, standing, kept=kept, boards=_boards.of(kept))


class _Remembered:
    """A cache of the boards for the last few device orders."""

    def __init__(self) -> None:
        self._made: OrderedDict[str, Boards] = OrderedDict()
        self._lock = Lock()

    def of(self, kept: StoredSnapshot) -> Boards:
        with self._lock:
            if kept.order in self._made:
                self._made.move_to_end(kept.order)
                return self._made[kept.order]
        made = boards_in(kept.snapshot.devices)
        with self._lock:
            self._made[kept.order] = made
            while len(self._made) > MOST_ORDERS:
                self._made.popitem(last=False)
        return made


_boards = _Remembered()


def boards_in(devices: Iterable[GpuDevice]) -> Boards:
    """Returns the boards, each before its slices.

    A board without series of its own is represented by its first slice.
    """
    every: list[SnapshotBoard] = []
    by_node: dict[str, list[int]] = {}
    places: dict[tuple[str, str], int] = {}
    for place, device in enumerate(devices):
        key = (device.node_name, device.uuid)
        at = places.get(key)
        if at is None:
            places[key] = len(every)
            by_node.setdefault(device.node_name, []).append(len(every))
            is_slice = bool(device.gi_id)
            every.append(
                SnapshotBoard(
                    device.uuid, device.index, device.product, place, slices=int(is_slice), is_own=not is_slice
                )
            )
        elif device.gi_id:
            every[at] = replace(every[at], slices=every[at].slices + 1)
        else:
            every[at] = replace(every[at], place=place, is_own=True)
    by_index: dict[tuple[str, int | None], int] = {}
    for node, found in by_node.items():
        for at in found:
            by_index.setdefault((node, every[at].index), at)
    return Boards(tuple(every), by_node, places, by_index, has_slices=any(board.is_mig for board in every))


COLUMNS = ("pk", "telemetry_source__is_on", "telemetry_source__answered_at", "exporter_round__read_at")


def numbers(clusters: Collection[int] | None = None) -> dict[str, int]:
    """Returns the number of clusters by topic, from Prometheus or else from the exporters. None means all clusters. One
    query.

    While a Prometheus is configured, no exporter is read, even before its first answer.
    """
    seen = Cluster.objects.all() if clusters is None else Cluster.objects.filter(pk__in=clusters)
    answered = {
        key: answered_at if is_on else read_at
        for key, is_on, answered_at, read_at in seen.order_by().values_list(*COLUMNS)
    }
    return {telemetry_group(key): number_of(at) for key, at in answered.items() if at}
