"""The telemetry snapshot: the newest value of every GPU of a cluster, one column per metric, with sample times.

A value stays with its time when its series ends. NaN means never reported.
"""

import math
import re
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import repeat
from operator import lt
from typing import NamedTuple

AMDS_PARTITION = re.compile(r"[a-z]px(_nps\d+)?$")  # how it is cut: cpx_nps4
NEVER = math.nan
WITHOUT = -math.inf  # the time of a series without a plausible value
GpuDeviceKey = tuple[str, str]  # the UUID of its board, and the slice of it; blank: all of it


class GpuDevice(NamedTuple):
    """A board, or a slice of one. Sorted in a snapshot by node, index and slice.

    It is a tuple, since 40,000 of them are compared and serialised in each round.
    """

    node_name: str
    index: int | None  # type: ignore[assignment]  # of the board in its node; a tuple's method is asked by nobody
    uuid: str  # of the physical GPU, also for slices; without one, the exporter's own id
    gi_id: str = ""  # of the slice; blank: the whole board
    profile: str = ""
    product: str = ""
    serial: str = ""  # serial number of the GPU; blank: not reported

    @property
    def key(self) -> GpuDeviceKey:
        return self.uuid, self.gi_id

    @property
    def is_mig(self) -> bool:
        """Returns whether it is a MIG slice. Boards and AMD partitions have a utilisation of their own."""
        return bool(self.gi_id) and not AMDS_PARTITION.match(self.profile)

    @property
    def sort_key(self) -> tuple[str, int, str, str]:
        return self.node_name, -1 if self.index is None else self.index, self.gi_id, self.uuid


@dataclass
class MetricColumn:
    """`values[i]` of device i in the metric's unit, sampled at `times[i]` in seconds since the epoch by our clock.

    NaN in both means never sampled. For a series without a valid value the time is `WITHOUT`.
    """

    values: "array[float]"
    times: "array[float]"

    @classmethod
    def empty(cls, length: int) -> "MetricColumn":
        return cls(no_values(length), no_values(length))

    def newest(self) -> float:
        """Returns the newest time; NaN if there is no series, `WITHOUT` if there is no value."""
        return max((at for at in self.times if at == at), default=NEVER)

    def copied(self) -> "MetricColumn":
        return MetricColumn(self.values[:], self.times[:])


@dataclass(frozen=True)
class Checkpoint:
    """The values of counters at one moment by metric. Later growth is the difference."""

    taken_at: float
    values: "Mapping[str, array[float]]"


@dataclass(frozen=True)
class PastXid:
    """An Xid that a GPU has had, whether or not its gauge still shows it."""

    since: float  # when it first appeared, in seconds since the epoch; NaN: it was there at the first snapshot
    words: str = ""  # the exporter's own


@dataclass
class TelemetrySnapshot:
    taken_at: float  # seconds since the epoch, our clock
    devices: Sequence[GpuDevice]
    columns: dict[str, MetricColumn] = field(default_factory=dict)  # by the key of the metric
    checkpoints: tuple[Checkpoint, ...] = ()  # the oldest first
    # By the key of a latched metric: since when each device has its value. NaN: since before the first snapshot.
    latched: "dict[str, array[float]]" = field(default_factory=dict)
    # By device key: each Xid since the last restart of its counter. The gauge shows only the last one.
    past_xids: Mapping[tuple[str, str], Mapping[int, PastXid]] = field(default_factory=dict)

    def index(self) -> Mapping[tuple[str, str], int]:
        return {device.key: place for place, device in enumerate(self.devices)}

    def nodes_with(self, key: str) -> frozenset[str]:
        """Returns the nodes whose exporter has this metric, or had it within a day."""
        column = self.columns.get(key)
        if column is None:
            return frozenset()
        return frozenset(device.node_name for device, at in zip(self.devices, column.times, strict=True) if at == at)

    def metrics_of_nodes(self) -> "dict[str, list[str]]":
        """Returns by node all metrics that its exporter has, or had within a day."""
        has: dict[str, list[str]] = {device.node_name: [] for device in self.devices}
        for key in self.columns:
            for node in self.nodes_with(key):
                has[node].append(key)
        return has

    def new_boards_since(self, before: "TelemetrySnapshot") -> tuple[GpuDevice, ...]:
        """Returns the devices of boards that are new on their node; none in a first snapshot."""
        if not before.devices or self.devices == before.devices:
            return ()
        there = {(device.node_name, device.uuid) for device in before.devices}
        return tuple(device for device in self.devices if (device.node_name, device.uuid) not in there)

    @cached_property
    def newest(self) -> "array[float]":
        """Returns `newest_by_device`, computed once for a snapshot that no longer changes."""
        return self.newest_by_device()

    def newest_by_device(self) -> "array[float]":
        """Returns the time of each device's newest sample; minus infinity if it never had one."""
        newest = array("d", [-math.inf]) * len(self.devices)
        for times in {column.times.tobytes(): column.times for column in self.columns.values()}.values():
            newest = array("d", map(max, newest, times))  # NaN is no more than anything
        return newest

    def carried(self, devices: Sequence[GpuDevice], *, forget_before: float) -> "TelemetrySnapshot":
        """Returns a snapshot of these devices with the known values of this one."""
        if devices == self.devices:  # as nearly always
            return self._carried_on(devices, forget_before=forget_before)
        places = self.index()
        kept = [places.get(device.key, -1) for device in devices]
        if kept == list(range(len(self.devices))):
            return self._carried_on(devices, forget_before=forget_before)
        grown = TelemetrySnapshot(self.taken_at, devices)
        for key, column in self.columns.items():
            fresh = grown.columns[key] = MetricColumn.empty(len(devices))
            for place, before in enumerate(kept):
                if before >= 0 and column.times[before] >= forget_before:
                    fresh.values[place], fresh.times[place] = column.values[before], column.times[before]
        grown.checkpoints = tuple(
            Checkpoint(each.taken_at, {key: _moved(values, kept) for key, values in each.values.items()})
            for each in self.checkpoints
        )
        grown.latched = {key: _moved(since, kept) for key, since in self.latched.items()}
        there = {device.key for device in devices} if self.past_xids else set()
        grown.past_xids = {key: told for key, told in self.past_xids.items() if key in there}
        return grown

    def _carried_on(self, devices: Sequence[GpuDevice], *, forget_before: float) -> "TelemetrySnapshot":
        grown = self.copied()
        grown.devices = devices
        for column in grown.columns.values():
            if not any(map(lt, column.times, repeat(forget_before))):
                continue
            for place in [place for place, at in enumerate(column.times) if at < forget_before]:
                column.values[place] = column.times[place] = NEVER
        return grown

    def copied(self) -> "TelemetrySnapshot":
        columns = {key: column.copied() for key, column in self.columns.items()}
        return TelemetrySnapshot(
            self.taken_at, self.devices, columns, self.checkpoints, dict(self.latched), self.past_xids
        )


def no_values(length: int) -> "array[float]":
    return array("d", [NEVER]) * length


def in_order(devices: Iterable[GpuDevice]) -> tuple[GpuDevice, ...]:
    return tuple(sorted(devices, key=lambda device: device.sort_key))


def _moved(values: "array[float]", kept: Sequence[int]) -> "array[float]":
    """Returns the values in the new order; NaN for new devices."""
    return array("d", (values[before] if before >= 0 else NEVER for before in kept))
