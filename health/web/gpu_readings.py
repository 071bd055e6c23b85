"""Further readings of a GPU beside those in its line: each metric's newest value, also without a Prometheus."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from gpu.xids import RECOVERY_ACTIONS
from health.gpus.columns import UNITLESS
from health.rules.gpus.fabric import STATUSES, faults_in
from health.sources.history import OF_SLICES
from health.sources.node_telemetry import DeviceTelemetry
from health.sources.readings import MetricReading, ReadingState
from health.telemetry.metrics import METRICS, SLOWED_BY
from health.web.reading_cells import ReadingCell, cell_of, gib, reading_style
from wording.lists import names

# Not plotted: it is in the GPU's line, or is of one vendor alone, or has no known unit.
NOT_HERE = frozenset({
    "temperature_celsius", "gpu_utilisation_ratio", "engine_active_ratio", "memory_used_mib", "memory_free_mib",
    "power_watts", "power_limit_watts", "energy_joules", "xid", "called_healthy",
}) | UNITLESS  # fmt: skip
YES_OR_NO = UNITLESS | {"row_remap_pending", "row_remap_failed", "called_healthy"}
HEALTH = {0.0: "well", 10.0: "warning", 20.0: "failure"}
NUMBERED: Mapping[str, Callable[[int], str]] = {
    "recovery_action": lambda number: RECOVERY_ACTIONS[number].title if number in RECOVERY_ACTIONS else "",
    "fabric_manager_status": lambda number: STATUSES.get(number, ""),
    "fabric_health": lambda number: names(faults_in(number)) or "no fault",
}


@dataclass(frozen=True)
class OtherReadings:
    cells: Sequence[tuple[str, ReadingCell]]  # by the metric's title
    not_exported: Sequence[str]  # titles


def other_readings(devices: Sequence[DeviceTelemetry]) -> OtherReadings | None:
    """Returns the readings of a board, from its first device with telemetry; None if there never was any.

    Each slice repeats the board's values, except for the slice's own metrics.
    """
    device = next((each for each in devices if each.is_exported), None)
    if device is None:
        return None
    elsewhere = NOT_HERE | OF_SLICES if device.gi_id else NOT_HERE
    there = [(key, reading) for key, reading in device.metrics.items() if key not in elsewhere]
    missed = [(METRICS[key], reading) for key, reading in there if METRICS[key].is_missed]
    lacks = [metric.title for metric, reading in missed if reading.state is ReadingState.NOT_EXPORTED]
    return OtherReadings(list(_cells(there)), lacks)


def _cells(there: Sequence[tuple[str, MetricReading]]) -> Iterator[tuple[str, ReadingCell]]:
    for key, reading in there:
        if reading.state is not ReadingState.NOT_EXPORTED:
            words = "" if reading.value is None else words_of(key, reading.value)
            cell = cell_of(reading, "") if reading.value is None else ReadingCell(reading_style(reading), words)
            yield METRICS[key].title, cell


def words_of(key: str, value: float) -> str:
    unit = METRICS[key].unit
    if key.endswith("_ratio"):
        return f"{value:.0%}"
    if key in YES_OR_NO:
        return "yes" if value else "no"
    if key == "dcgm_health":
        return HEALTH.get(value, f"{value:.0f}")
    if key in NUMBERED:
        return NUMBERED[key](int(value)) or f"unknown ({value:.0f})"
    if key == "clock_reasons":
        reasons = [f"{each.reason} ({name})" for name, each in SLOWED_BY.items() if int(value) & each.bit]
        return names(reasons) or "none that slows it"
    if unit == "B/s":
        return f"{value / 1e9:.2f} GB/s"
    if unit == "J":
        return f"{value / 3.6e6:.1f} kWh"
    if unit == "MiB/s":
        return f"{gib(value)} GiB/s"
    return f"{value:.0f} {unit}".rstrip()
