"""One sample a minute of a node's GPUs as 16-bit fixed-point numbers, in blocks of a quarter of an hour. Pure."""

import math
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from health.telemetry.hours import fresh_values
from health.telemetry.snapshot import GpuDeviceKey, TelemetrySnapshot

MINUTE_S = 60
BLOCK_MINUTES = 15
BLOCK_S = BLOCK_MINUTES * MINUTE_S
KEPT_S = 24 * 3600
NO_SAMPLE = -(1 << 15)
LARGEST = (1 << 15) - 1
# By metric the numbers that one unit has. The last Xid is kept for the marks of plots.
NUMBERS_PER_UNIT: Mapping[str, float] = {
    "gpu_utilisation_ratio": 1000,
    "engine_active_ratio": 1000,  # used only if the metric above is missing
    "tensor_active_ratio": 1000,
    "memory_used_mib": 1 / 16,  # up to 512 GiB
    "temperature_celsius": 10,
    "power_watts": 2,
    "sm_clock_mhz": 1,
    "xid": 1,
}
MinuteSamples = Mapping[str, "array[float]"]  # by metric a value a device; NaN: no sample


@dataclass
class MinuteBlock:
    begins_at: float  # seconds since the epoch
    devices: list[GpuDeviceKey] = field(default_factory=list)
    columns: "dict[str, array[int]]" = field(default_factory=dict)  # by metric BLOCK_MINUTES numbers a device

    def is_whole(self) -> bool:
        """Returns whether each column has room for each minute of each device."""
        return all(len(column) == BLOCK_MINUTES * len(self.devices) for column in self.columns.values())

    def add(self, devices: Sequence[GpuDeviceKey], samples: MinuteSamples, *, at: float) -> None:
        """Writes the samples of these devices, in their order, into the minute of this instant."""
        minute = int(at - self.begins_at) // MINUTE_S
        starts = [self._start_of(device) + minute for device in devices]
        for metric, values in samples.items():
            per_unit, column = NUMBERS_PER_UNIT[metric], self.columns.get(metric)
            for start, value in zip(starts, values, strict=True):
                number = round(value * per_unit) if value == value else NO_SAMPLE
                if NO_SAMPLE < number <= LARGEST:
                    if column is None:
                        column = self.columns[metric] = array("h", [NO_SAMPLE]) * (BLOCK_MINUTES * len(self.devices))
                    column[start] = number

    def line(self, metric: str, device: GpuDeviceKey) -> "array[float] | None":
        """Returns a value per minute in the metric's unit, NaN without a sample; None without any sample."""
        column = self.columns.get(metric)
        if column is None or device not in self.devices:
            return None
        start, per_unit = BLOCK_MINUTES * self.devices.index(device), NUMBERS_PER_UNIT[metric]
        numbers = column[start : start + BLOCK_MINUTES]
        return array("d", [math.nan if number == NO_SAMPLE else number / per_unit for number in numbers])

    def _start_of(self, device: GpuDeviceKey) -> int:
        """Returns the position of the device's first minute; a new device gets one."""
        if device not in self.devices:
            self.devices.append(device)
            for column in self.columns.values():
                column.extend([NO_SAMPLE] * BLOCK_MINUTES)
        return BLOCK_MINUTES * self.devices.index(device)


def block_begin(at: float) -> float:
    return at - at % BLOCK_S


def samples_of(snapshot: TelemetrySnapshot, *, now: float) -> "dict[str, array[float]]":
    """Returns the newest samples of the last minute, for metrics with any.

    A partitioned board has no usual utilisation, whatever its exporter reports (`hours.utilisation`).
    """
    samples = {metric: fresh_values(snapshot, metric, now - MINUTE_S) for metric in NUMBERS_PER_UNIT}
    usual, engine = samples["gpu_utilisation_ratio"], samples["engine_active_ratio"]
    cut = {device.uuid for device in snapshot.devices if device.is_mig}
    samples["gpu_utilisation_ratio"] = array(
        "d", (math.nan if device.uuid in cut else value for device, value in zip(snapshot.devices, usual, strict=True))
    )
    samples["engine_active_ratio"] = array(
        "d",
        (
            other if value != value else math.nan
            for value, other in zip(samples["gpu_utilisation_ratio"], engine, strict=True)
        ),
    )
    return {metric: values for metric, values in samples.items() if any(value == value for value in values)}
