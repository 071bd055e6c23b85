"""What the tests of the table of GPUs share: frames, and a table read as whoever may see everything."""

import math
from array import array
from typing import Any

from health.gpus import roster_cache
from health.gpus.gpu_filter import GpuFilter
from health.gpus.table import GpuTable, table_of
from health.sources import snapshots
from health.telemetry.base import DeviceXid, TelemetryReading
from health.telemetry.snapshot import GpuDevice, MetricColumn, TelemetrySnapshot
from tests.make import NOON

AT = NOON.timestamp() - 5
UNSAID = math.nan


def tell(cluster, *devices: GpuDevice, ages: list[float] | None = None, xids=None, **columns: list[float]) -> None:
    """What a source said five seconds ago, or so long ago of each device."""
    snapshot = TelemetrySnapshot(AT, devices)
    times = [NOON.timestamp() - age for age in ages] if ages else [AT] * len(devices)
    for key, values in columns.items():
        snapshot.columns[key] = MetricColumn(array("d", values), array("d", times))
    said = {("GPU-a", ""): DeviceXid(79, "fell off the bus")} if xids is None else xids
    snapshots.store(cluster.pk, TelemetryReading(snapshot, frozenset(columns), said))


def table(user, **wanted: Any) -> GpuTable:
    roster_cache.forget()  # a row that was rolled back may have had the same key
    return table_of(user, GpuFilter(**wanted), now=NOON)


def names(user, **wanted: Any) -> list[str]:
    """As `gpu-1/0`, in the order of the table."""
    return [f"{seen.node.name}/{seen.gpu.index}" for seen in table(user, **wanted).every()]
