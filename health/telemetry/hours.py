"""Hourly sums of GPU activity, added snapshot by snapshot: observed, under load, by engine, and temperature. Pure.

Exposure is time under load, the base of error rates. Time without telemetry is in no sum.
"""

import math
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from operator import ge

from health.telemetry.base import STALE_AFTER_S
from health.telemetry.snapshot import GpuDevice, TelemetrySnapshot, no_values

HOUR_S = 3600
GAP_AT_MOST_S = 2 * STALE_AFTER_S  # a longer gap is unknown
BUSY_FROM = 0.01  # of its time: NVIDIA's own unit is whole percents
IDLE_BELOW = 0.05  # of its time, in the mean of an hour, or at each minute. Ours
UTILISATION = ("engine_active_ratio", "gpu_utilisation_ratio")  # the second is believed where there are both
XID = "xid"
# Of which there is a mean; of utilisation besides, from either of two.
MEANS = {
    "tensor": "tensor_active_ratio", "bandwidth": "memory_active_ratio", "temperature": "temperature_celsius",
    "power": "power_watts",
}  # fmt: skip
# Counters whose increase is added up, each as the sum of these metrics. Being held at the power limit is no fault.
INCREASES = {
    "ecc_corrected": ("ecc_corrected",),
    "nvlink_errors": ("nvlink_flit_errors", "nvlink_data_errors", "nvlink_replays", "nvlink_recoveries"),
    "throttled": ("throttled_thermal", "throttled_board", "throttled_reliability"),
}
SUMS = (
    "seen_s", "busy_s", "xids",
    *(f"{name}_{part}" for name in ("utilisation", *MEANS) for part in ("s", "sum")),
    *(f"{name}_{part}" for name in INCREASES for part in ("s", "more", "growing_s")),
)  # fmt: skip
# Previous values; the last time with load, and the last time without a load report.
LASTS = ("last_xid", *(f"{name}_last" for name in INCREASES), "loaded_at", "unmeasured_at")
PEAKS = ("temperature_max", "memory_max", *LASTS)  # NaN: not reported


@dataclass(frozen=True)
class GpuHourSums:
    """The sums of one device. None means not reported."""

    device: GpuDevice
    seen_s: float
    busy_s: float | None
    utilisation: float | None  # mean, 0 to 1
    tensor: float | None  # mean time that its tensor cores were at work, 0 to 1
    bandwidth: float | None  # mean part of its memory's bandwidth that was used, 0 to 1
    temperature: float | None  # mean, °C
    temperature_max: float | None
    power_watts: float | None  # mean
    memory_max_mib: float | None
    xids: int | None  # lower bound: a repeated Xid is not visible
    ecc_corrected: float | None = None  # more of them in the time in which they were counted
    nvlink_errors: float | None = None  # sum of errors, replays and recoveries
    throttled: float | None = None  # part of the time in which a counter of throttling grew, 0 to 1


@dataclass(frozen=True)
class IdleTime:
    """The time for which a GPU has had no load, up to its last sample."""

    measured_s: float = 0.0  # without a gap in its telemetry
    quiet_s: float = math.inf  # since the last load that was reported; infinite: none was


@dataclass
class HourTally:
    hour: float  # start of the hour, in seconds since the epoch
    counted_at: float  # up to when it has been added up
    devices: Sequence[GpuDevice]
    columns: "dict[str, array[float]]" = field(default_factory=dict)

    @classmethod
    def begun(
        cls, snapshot: TelemetrySnapshot, *, now: float, lasts: "Mapping[str, array[float]] | None" = None
    ) -> "HourTally":
        length = len(snapshot.devices)
        columns = {key: array("d", bytes(8 * length)) for key in SUMS} | {key: no_values(length) for key in PEAKS}
        return cls(hour_of(now), now, tuple(snapshot.devices), {**columns, **(lasts or {})})

    def carried(self, devices: Sequence[GpuDevice]) -> "HourTally":
        """Returns the tally for these devices. Sums of removed devices are kept behind them."""
        if tuple(devices) == tuple(self.devices):
            return self
        there = {device.key for device in devices}
        every = (*devices, *(device for device in self.devices if device.key not in there))
        places = {device.key: place for place, device in enumerate(self.devices)}
        kept = [places.get(device.key, -1) for device in every]
        columns = {
            key: array("d", (values[at] if at >= 0 else (0.0 if key in SUMS else math.nan) for at in kept))
            for key, values in self.columns.items()
        }
        return HourTally(self.hour, self.counted_at, every, columns)

    def add(self, snapshot: TelemetrySnapshot, *, now: float) -> None:
        """Adds the time since the last call with the values of the snapshot, up to the end of the hour.

        The snapshot's devices are the first of ours, in the same order.
        """
        until = min(now, self.hour + HOUR_S)
        elapsed = max(0.0, until - self.counted_at)
        gap = min(elapsed, GAP_AT_MOST_S)
        self.counted_at = until
        reporting_devices = snapshot.newest_by_device()
        fresh = now - STALE_AFTER_S
        self._sum("seen_s", (gap if at >= fresh else 0.0 for at in reporting_devices))
        busy = utilisation(snapshot, fresh)
        self._loads(busy, is_gap=elapsed > GAP_AT_MOST_S)
        self._means(snapshot, busy, gap, fresh)
        self._peak("temperature_max", snapshot, "temperature_celsius", fresh)
        self._peak("memory_max", snapshot, "memory_used_mib", fresh)
        self._xids(snapshot)
        for name, metrics in INCREASES.items():
            if exported := [metric for metric in metrics if metric in snapshot.columns]:
                self._increase(name, [fresh_values(snapshot, metric, fresh) for metric in exported], gap)

    def rows(self) -> Iterator[GpuHourSums]:
        every = self.columns
        for place, device in enumerate(self.devices):
            if every["seen_s"][place]:
                busy_known = every["utilisation_s"][place] > 0
                has_gauge = _value_or_none(every["last_xid"][place]) is not None
                yield GpuHourSums(
                    device=device,
                    seen_s=every["seen_s"][place],
                    busy_s=every["busy_s"][place] if busy_known else None,
                    utilisation=self._mean("utilisation", place),
                    tensor=self._mean("tensor", place),
                    bandwidth=self._mean("bandwidth", place),
                    temperature=self._mean("temperature", place),
                    temperature_max=_value_or_none(every["temperature_max"][place]),
                    power_watts=self._mean("power", place),
                    memory_max_mib=_value_or_none(every["memory_max"][place]),
                    xids=int(every["xids"][place]) if has_gauge else None,
                    ecc_corrected=self._more("ecc_corrected", place),
                    nvlink_errors=self._more("nvlink_errors", place),
                    throttled=self._growing("throttled", place),
                )

    def idle_times(self) -> "dict[str, dict[str, IdleTime]]":
        """Returns the idle time of each board by node name and UUID. A board is idle while all its slices are."""
        cut = {device.uuid for device in self.devices if device.is_mig}
        found: dict[str, dict[str, IdleTime]] = {}
        columns = (self.columns["loaded_at"], self.columns["unmeasured_at"])
        for device, loaded, unmeasured in zip(self.devices, *columns, strict=False):
            if device.uuid in cut and not device.is_mig:
                continue
            quiet = self.counted_at - loaded if loaded == loaded else math.inf
            measured = min(quiet, self.counted_at - unmeasured) if unmeasured == unmeasured else 0.0
            boards = found.setdefault(device.node_name, {})
            slice_before = boards.get(device.uuid, IdleTime(math.inf))
            boards[device.uuid] = IdleTime(min(measured, slice_before.measured_s), min(quiet, slice_before.quiet_s))
        return found

    def _loads(self, busy: "array[float]", *, is_gap: bool) -> None:
        """Notes when devices were last under load, or not measured. The first sample of a device ends a gap."""
        loaded, unmeasured, at = self.columns["loaded_at"], self.columns["unmeasured_at"], self.counted_at
        for place, value in enumerate(busy):
            if value >= IDLE_BELOW:
                loaded[place] = at
            if is_gap or value != value or unmeasured[place] != unmeasured[place]:
                unmeasured[place] = at

    def _means(self, snapshot: TelemetrySnapshot, busy: "array[float]", gap: float, fresh: float) -> None:
        self._sum("busy_s", (gap if value >= BUSY_FROM else 0.0 for value in busy))
        self._weigh("utilisation", busy, gap)
        for name, metric in MEANS.items():
            if metric in snapshot.columns:
                self._weigh(name, fresh_values(snapshot, metric, fresh), gap)

    def _weigh(self, name: str, values: "array[float]", gap: float) -> None:
        """Adds the parts of a weighted mean."""
        seconds, total = self.columns[f"{name}_s"], self.columns[f"{name}_sum"]
        for place, value in enumerate(values):
            if value == value:
                seconds[place] += gap
                total[place] += gap * value

    def _xids(self, snapshot: TelemetrySnapshot) -> None:
        """Counts changes of the last Xid. The first one observed of a device is older than the observation."""
        column = snapshot.columns.get(XID)
        if column is None:
            return
        last, count = self.columns["last_xid"], self.columns["xids"]
        for place, value in enumerate(column.values):
            if value == value and value != last[place]:
                if value and last[place] == last[place]:
                    count[place] += 1
                last[place] = value

    def _increase(self, name: str, columns: "Sequence[array[float]]", gap: float) -> None:
        """Adds the increase since the last call. A lower value is a new beginning, and so is the first one."""
        last, seconds = self.columns[f"{name}_last"], self.columns[f"{name}_s"]
        more, growing = self.columns[f"{name}_more"], self.columns[f"{name}_growing_s"]
        for place, values in enumerate(zip(*columns, strict=True)):
            value = sum(values)
            if value != value:
                continue
            if value >= last[place]:
                seconds[place] += gap
                if value > last[place]:
                    more[place] += value - last[place]
                    growing[place] += gap
            last[place] = value

    def _sum(self, key: str, more: Iterator[float]) -> None:
        column = self.columns[key]
        for place, value in enumerate(more):
            if value:
                column[place] += value

    def _peak(self, key: str, snapshot: TelemetrySnapshot, metric: str, fresh: float) -> None:
        column = self.columns[key]
        for place, value in enumerate(fresh_values(snapshot, metric, fresh)):
            if value == value and not value <= column[place]:  # NaN is no more than anything
                column[place] = value

    def _more(self, name: str, place: int) -> float | None:
        return self.columns[f"{name}_more"][place] if self.columns[f"{name}_s"][place] else None

    def _growing(self, name: str, place: int) -> float | None:
        seconds = self.columns[f"{name}_s"][place]
        return self.columns[f"{name}_growing_s"][place] / seconds if seconds else None

    def _mean(self, name: str, place: int) -> float | None:
        seconds = self.columns[f"{name}_s"][place]
        return self.columns[f"{name}_sum"][place] / seconds if seconds else None


def hour_of(at: float) -> float:
    return at - at % HOUR_S


def fresh_values(snapshot: TelemetrySnapshot, key: str, fresh: float) -> "array[float]":
    """Returns current values; NaN if missing or outdated."""
    column = snapshot.columns.get(key)
    if column is None:
        return no_values(len(snapshot.devices))
    if all(map(ge, column.times, repeat(fresh))) and all(map(math.isfinite, column.values)):
        return column.values
    pairs = zip(column.values, column.times, strict=True)
    return array("d", (value if at >= fresh and math.isfinite(value) else math.nan for value, at in pairs))


def utilisation(snapshot: TelemetrySnapshot, fresh: float) -> "array[float]":
    """Returns the utilisation of each device from 0 to 1; NaN if unknown, which is not 0."""
    first, better = (fresh_values(snapshot, key, fresh) for key in UTILISATION)
    cut = {device.uuid for device in snapshot.devices if device.is_mig}  # DCGM reports none of these, or 0
    if not cut and all(map(math.isfinite, better)):
        return better
    return array(
        "d",
        (
            one if device.uuid in cut or other != other else other
            for device, one, other in zip(snapshot.devices, first, better, strict=True)
        ),
    )


def _value_or_none(value: float) -> float | None:
    return value if value == value else None
