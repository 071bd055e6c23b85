"""One metric of one device with its state: the only place that decides it, for pages and REST. Pure.

Zero is a value. A missing value is never zero, and has a reason.
"""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from health.telemetry.base import AHEAD_S, FORGET_AFTER_S, STALE_AFTER_S
from health.telemetry.metrics import METRICS
from health.telemetry.snapshot import TelemetrySnapshot

# NVML, the source of DCGM, reports nothing or 0 for a GPU in MIG mode: neither is a utilisation.
NOT_UNDER_MIG = frozenset({"gpu_utilisation_ratio", "memory_busy_ratio"})
# A partitioned GPU has these metrics per slice, and none as a whole unless it has its own series.
BY_SLICE = frozenset({"gpu_utilisation_ratio", "engine_active_ratio", "memory_used_mib", "memory_free_mib"})
UTILISATION = ("gpu_utilisation_ratio", "engine_active_ratio")


class ReadingState(StrEnum):
    FRESH = "fresh"
    STALE = "stale"  # the source answers, but the last sample is too old
    NOT_EXPORTED = "not-exported"  # the exporter has no series of this metric
    SOURCE_SILENT = "source-silent"  # the value is the last one before the silence
    NO_SOURCE = "no-source"  # the cluster has none, or it is switched off
    NEVER = "never"  # no value of this device is known, though its exporter has a series or never reported
    NOT_APPLICABLE = "not-applicable"  # such a device never has this metric


@dataclass(frozen=True)
class Standing:
    """The state of a cluster's source, as far as it affects values."""

    has_source: bool
    is_silent: bool = False
    silent_since: float | None = None  # seconds since the epoch; None: not silent, or unknown
    exported: frozenset[str] = frozenset()  # keys of metrics that any exporter has; `of_exporter`: that this one has

    @property
    def is_reporting(self) -> bool:
        return self.has_source and not self.is_silent

    def of_exporter(self, has: Collection[str]) -> "Standing":
        """Returns the state for one node whose exporter has these metrics. Exporters of one source may differ."""
        return replace(self, exported=frozenset(has))


@dataclass(frozen=True)
class MetricReading:
    state: ReadingState
    value: float | None = None  # in the metric's unit; None: there is none
    sampled_at: float | None = None  # seconds since the epoch, our clock; None: there is no value
    since: float | None = None  # start of staleness or silence; None: neither, or unknown

    @property
    def is_fresh(self) -> bool:
        return self.state is ReadingState.FRESH


def read_metric(
    key: str, value: float, sampled_at: float, standing: Standing, *, now: float, is_mig: bool = False
) -> MetricReading:
    """Returns the reading. `value` and `sampled_at` are NaN if there never was a sample.

    `is_mig` means a slice, or a board with slices.
    """
    if not standing.has_source:
        return MetricReading(ReadingState.NO_SOURCE)
    if is_mig and key in NOT_UNDER_MIG:
        return MetricReading(ReadingState.NOT_APPLICABLE)
    if not (math.isfinite(value) and now - FORGET_AFTER_S <= sampled_at <= now + AHEAD_S):
        return _without_value(key, standing)
    if standing.is_silent:
        return MetricReading(ReadingState.SOURCE_SILENT, value, sampled_at, since=standing.silent_since)
    if now - sampled_at > STALE_AFTER_S:
        return MetricReading(ReadingState.STALE, value, sampled_at, since=sampled_at)
    return MetricReading(ReadingState.FRESH, value, sampled_at)


def _without_value(key: str, standing: Standing) -> MetricReading:
    if standing.is_silent:
        return MetricReading(ReadingState.SOURCE_SILENT, since=standing.silent_since)
    return MetricReading(ReadingState.NEVER if key in standing.exported else ReadingState.NOT_EXPORTED)


def read_device(
    snapshot: TelemetrySnapshot, place: int, standing: Standing, *, now: float, is_mig: bool
) -> Mapping[str, MetricReading]:
    found = {}
    for key in METRICS:
        column = snapshot.columns.get(key)
        value, at = (column.values[place], column.times[place]) if column else (math.nan, math.nan)
        found[key] = read_metric(key, value, at, standing, now=now, is_mig=is_mig)
    return found


def nothing_read(standing: Standing, *, now: float) -> Mapping[str, MetricReading]:
    return {key: read_metric(key, math.nan, math.nan, standing, now=now) for key in METRICS}


def utilisation(readings: Mapping[str, MetricReading]) -> tuple[str, MetricReading]:
    """Returns the utilisation of a device and its metric. Under MIG, or without the usual metric, it is the engine's.

    The same holds if the usual metric is no longer exported: its last value is outdated. For a GPU shared by several
    pods it is the whole GPU's, and cannot be split by pod.
    """
    usual, other = (readings[key] for key in UTILISATION)
    is_better = (other.is_fresh, other.value is not None) > (usual.is_fresh, usual.value is not None)
    is_other = usual.state is ReadingState.NOT_APPLICABLE or is_better
    return (UTILISATION[1], other) if is_other else (UTILISATION[0], usual)
