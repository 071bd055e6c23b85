"""The GPU telemetry of one node: its rows, its part of the snapshot, and the state of its source."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from fleet.models import ExporterRound, Gpu, Node
from health.models import SourceState, TelemetrySource
from health.models.telemetry_source import STALE_AFTER
from health.sources import snapshots
from health.sources.readings import MetricReading, Standing, nothing_read, read_device, utilisation
from health.sources.snapshots import SnapshotsUnavailable, StoredSnapshot
from health.telemetry.base import DeviceXid
from health.telemetry.metrics import exportable
from health.telemetry.snapshot import GpuDevice

NUMBERLESS = "The source names GPUs of this node only by serial number or UUID, so this GPU cannot be identified."
REDIS_AWAY = "Redis does not answer, so the last values of the GPUs are unknown: {}"


@dataclass(frozen=True)
class DeviceTelemetry:
    index: int | None  # index of the GPU; None: unknown
    uuid: str  # UUID of the physical GPU, also for slices; blank: not reported yet
    gi_id: str
    profile: str
    product: str
    is_mig: bool  # a slice, or a board that is cut into some
    is_exported: bool  # whether the source ever named it
    metrics: Mapping[str, MetricReading]
    xid_words: str = ""  # the exporter's text for its last Xid
    serial: str = ""  # serial number of the GPU; blank: not reported
    listed: int | None = None  # index of the GPU's page, as Kubernetes counts; None: unknown

    @property
    def board(self) -> str:
        return f"GPU {self.uuid}".strip() if self.index is None else f"GPU {self.index}"

    @property
    def name(self) -> str:
        return f"{self.board} slice {self.gi_id}" if self.gi_id else self.board

    @property
    def busy(self) -> MetricReading:
        return utilisation(self.metrics)[1]


@dataclass(frozen=True)
class NodeTelemetry:
    source: TelemetrySource | None
    standing: Standing
    trouble: str  # why the stored snapshot cannot be read; blank: it can
    devices: list[DeviceTelemetry]  # by index and slice
    exporters: ExporterRound | None = None  # result of the last round of the cluster's exporters; None: no round

    @property
    def has_prometheus(self) -> bool:
        """Returns whether a Prometheus is configured. Without one, exporters are read directly."""
        return self.source is not None and self.source.state != SourceState.OFF

    def why_none_of(self, gpu: Gpu) -> str:
        """Returns why no device matches this GPU without a UUID; empty if its source numbers all devices."""
        is_one = not gpu.uuid and any(device.is_exported and device.index is None for device in self.devices)
        return NUMBERLESS if is_one else ""


def source_state(source: TelemetrySource | None, asked: ExporterRound | None, *, now: datetime) -> Standing:
    """Returns the state of the Prometheus, or without one of the exporters that are read directly.

    A source that was not queried for long counts as silent, whatever its row says.
    """
    if source is None or source.state == SourceState.OFF:
        return _standing_of_exporters(asked, now=now)
    exported = frozenset(source.exported)
    if source.state != SourceState.ANSWERING:
        return Standing(has_source=True, is_silent=True, silent_since=source.state_since.timestamp(), exported=exported)
    reporting_devices = source.answered_at
    if reporting_devices is None or now - reporting_devices > STALE_AFTER:
        since = reporting_devices.timestamp() if reporting_devices else None
        return Standing(has_source=True, is_silent=True, silent_since=since, exported=exported)
    return Standing(has_source=True, exported=exported)


def _standing_of_exporters(asked: ExporterRound | None, *, now: datetime) -> Standing:
    if asked is None or asked.read_at is None:
        return Standing(has_source=False)
    is_silent = now - asked.read_at > STALE_AFTER
    return Standing(has_source=True, is_silent=is_silent, silent_since=asked.read_at.timestamp() if is_silent else None)


def telemetry_of(node: Node, *, now: datetime) -> NodeTelemetry:
    """Returns the node's telemetry with three queries, and two Redis requests if there is a source.

    Two more queries if exporters are read directly and the node's did not answer.
    """
    source = TelemetrySource.objects.filter(cluster=node.cluster_id).select_related("cluster").first()
    asked = ExporterRound.objects.filter(cluster=node.cluster_id).first()
    boards = list(Gpu.objects.filter(node=node).order_by("index"))
    standing, kept, trouble = source_state(source, asked, now=now), None, ""
    if standing.has_source:
        try:
            kept = snapshots.of_node(node.cluster_id, node.name)
            standing = standing if standing.exported else _with_exported_metrics(standing, kept, node.cluster_id)
            standing = standing.of_exporter(_exported_on(node, kept, standing))
        except SnapshotsUnavailable as error:
            trouble = REDIS_AWAY.format(error)
            standing = replace(standing, is_silent=True, silent_since=None)
    devices = _devices(kept, boards, standing, now=now.timestamp())
    placed = [replace(device, listed=_board_index(device, boards)) for device in devices]
    return NodeTelemetry(source, standing, trouble, placed, asked)


def _with_exported_metrics(standing: Standing, kept: StoredSnapshot | None, cluster_id: int) -> Standing:
    """Adds the metrics of all exporters of the cluster. A dead exporter's metrics still count.

    :raises SnapshotsUnavailable: when Redis does not answer
    """
    told = kept or snapshots.newest(cluster_id, ())
    return replace(standing, exported=told.exported) if told else standing


def _exported_on(node: Node, kept: StoredSnapshot | None, standing: Standing) -> Collection[str]:
    """Returns the metrics of the node's exporter. Without samples it may have all metrics of its vendor."""
    if kept is None:
        return standing.exported & exportable(node.gpu_vendor)
    return [key for key in kept.snapshot.columns if node.name in kept.snapshot.nodes_with(key)]


def _devices(
    kept: StoredSnapshot | None, boards: Iterable[Gpu], standing: Standing, *, now: float
) -> list[DeviceTelemetry]:
    """Returns the devices. A board without an index replaces a row without a UUID."""
    boards, found = list(boards), _exported_devices(kept, standing, now=now) if kept else []
    uuids, indexes = {device.uuid for device in found}, {device.index for device in found}
    strangers = {device.uuid for device in found if device.index is None} - {board.uuid for board in boards}
    nothing = nothing_read(standing, now=now)
    unsaid = [board for board in boards if not (board.uuid in uuids if board.uuid else board.index in indexes)]
    nameless = [board for board in unsaid if not board.uuid]
    found += [
        DeviceTelemetry(
            None if strangers and board in nameless else board.index, board.uuid, "", "", board.product,
            is_mig=False, is_exported=False, metrics=nothing,
        )
        for board in unsaid
        if board not in nameless[: len(strangers)]
    ]  # fmt: skip
    return sorted(found, key=lambda each: (each.index is None, each.index or 0, each.uuid, _slice_sort_key(each.gi_id)))


def _exported_devices(kept: StoredSnapshot, standing: Standing, *, now: float) -> list[DeviceTelemetry]:
    cut = {device.uuid for device in kept.snapshot.devices if device.is_mig}
    found = []
    for place, device in enumerate(kept.snapshot.devices):
        is_mig = device.uuid in cut
        metrics = read_device(kept.snapshot, place, standing, now=now, is_mig=is_mig)
        found.append(_exported_device(device, metrics, kept.xids.get(device.key), is_mig=is_mig))
    return found


def _exported_device(
    device: GpuDevice, metrics: Mapping[str, MetricReading], xid: DeviceXid | None, *, is_mig: bool
) -> DeviceTelemetry:
    is_same = xid is not None and metrics["xid"].value == xid.xid
    return DeviceTelemetry(
        device.index, device.uuid, device.gi_id, device.profile, device.product, is_mig=is_mig, is_exported=True,
        metrics=metrics, xid_words=xid.words if xid is not None and is_same else "", serial=device.serial,
    )  # fmt: skip


def _board_index(device: DeviceTelemetry, boards: Iterable[Gpu]) -> int | None:
    return next((board.index for board in boards if of_gpu([device], board)), None)


def of_gpu(devices: Iterable[DeviceTelemetry], gpu: Gpu) -> list[DeviceTelemetry]:
    """Returns a board and its slices, by UUID if known, else by index."""
    return [each for each in devices if (each.uuid == gpu.uuid if gpu.uuid else each.index == gpu.index)]


def _slice_sort_key(gi_id: str) -> tuple[int, str]:
    return (int(gi_id), "") if gi_id.isascii() and gi_id.isdigit() else (-1, gi_id)


def instant(at: float | None) -> datetime | None:
    """Returns seconds since the epoch as a datetime."""
    return None if at is None else datetime.fromtimestamp(at, UTC)
