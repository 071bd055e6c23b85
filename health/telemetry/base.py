"""The interface of telemetry sources: each updates the previous snapshot, or gives the reason why it cannot."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from health.telemetry.snapshot import GpuDevice, GpuDeviceKey, TelemetrySnapshot

PERIOD_S = 15.0  # between two frames: Prometheus asks exporters as often, by the GPU operator's ServiceMonitor
STALE_AFTER_S = 90.0  # an older sample is stale: exporters collect every 30 s, and may miss one
AHEAD_S = STALE_AFTER_S  # a sample that claims a later time than in as much is not believed
SKEW_S = 30.0  # between a source's clock and ours: more is worth a word
FORGET_AFTER_S = 24 * 3600.0  # after this time a device without new values is dropped


@dataclass(frozen=True)
class DeviceXid:
    """The last Xid of a device, with the exporter's text for it (`err_msg`)."""

    xid: int
    words: str = ""


# By device key and metric: each label value of its series that is not 0.
Parts = Mapping[GpuDeviceKey, Mapping[str, Mapping[str, float]]]
# By node: series that name no GPU (NVIDIA/DCGM #235).
UnplacedXids = Mapping[str, Sequence[DeviceXid]]
SERIES_AT_MOST = 2_000  # of one name at one exporter: 16 boards of 7 slices with 9 reasons each are 1,008
PART_CHARS = 40  # of a label's value


@dataclass(frozen=True)
class Exploding:
    """An exporter with more series of one name than GPUs can have."""

    name: str
    instance: str  # host and port, as its Prometheus calls it
    series: int


@dataclass(frozen=True)
class TelemetryReading:
    """One answer of a source. `exported` holds the keys of metrics with any series."""

    snapshot: TelemetrySnapshot
    exported: frozenset[str]
    xids: Mapping[GpuDeviceKey, DeviceXid]  # by the key of the device
    notes: tuple[str, ...] = ()  # anomalies, as sentences
    parts: Parts = field(default_factory=dict)
    exploding: tuple[Exploding, ...] = ()  # the worst first
    anew: tuple[GpuDevice, ...] = ()  # devices whose counters restarted at 0 since the last frame
    came: tuple[GpuDevice, ...] = ()  # of boards that the frame before had not on their nodes
    unplaced_xids: UnplacedXids = field(default_factory=dict)
    clock_offset_s: float = 0.0  # added to its clock to get ours; 0: the difference is at most `SKEW_S`


class Source(Protocol):
    def take(self, before: TelemetrySnapshot | None, *, now: float) -> TelemetryReading:
        """Returns the source's answer.

        :raises Unusable: with the reason and the recommended action
        """
