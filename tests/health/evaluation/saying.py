"""What GPUs say, frame by frame, with a real Redis between, and what is found of it."""

from datetime import timedelta

from fleet.models import Bookmark
from health.evaluation import evaluation_round
from health.models import Finding
from health.sources import snapshots
from health.telemetry.base import DeviceXid, TelemetryReading
from health.telemetry.snapshot import GpuDevice, MetricColumn, TelemetrySnapshot
from health.telemetry.snapshot_memory import remember
from tests.make import NOON

MINUTE = timedelta(minutes=1)
DEVICES = tuple(GpuDevice("gpu-001", index, f"GPU-{index}") for index in range(8))


class Saying:
    """Frames of a cluster one after the other, as rounds would keep them."""

    def __init__(self, cluster) -> None:
        self.cluster, self.devices = cluster, DEVICES
        self.snapshot = TelemetrySnapshot(NOON.timestamp(), DEVICES)

    def __call__(self, at, *, silent=(), words="", parts=None, **values: dict[int, float]) -> None:
        """`values`: by metric, of some of the devices; the others are well."""
        there = set(range(len(self.devices))) - set(silent)
        usual = {"temperature_celsius": 60.0, "xid": 0.0, **dict.fromkeys(values, 0.0)}
        every = {
            metric: {place: values.get(metric, {}).get(place, well) for place in there}
            for metric, well in usual.items()
        }
        self.only(at, words=words, parts=parts, told=values.get("xid", {}), **every)

    def only(self, at, *, words="", parts=None, told=(), **values: dict[int, float]) -> None:
        """A round in which of each metric these devices alone have a value. `told`: the Xids among them, by place."""
        before = self.snapshot.carried(self.devices, forget_before=0)
        snapshot = before.copied()
        snapshot.taken_at = at.timestamp()
        for metric, by_place in values.items():
            column = snapshot.columns.setdefault(metric, MetricColumn.empty(len(self.devices)))
            for place, value in by_place.items():
                column.values[place], column.times[place] = value, snapshot.taken_at
        remember(before, snapshot)
        xids = {self.devices[place].key: DeviceXid(int(xid), words) for place, xid in dict(told).items()}
        in_parts = {self.devices[place].key: said for place, said in (parts or {}).items()}
        snapshots.store(self.cluster.pk, TelemetryReading(snapshot, frozenset(snapshot.columns), xids, parts=in_parts))
        self.snapshot = snapshot
        looked(self.cluster, at)


def looked(cluster, at) -> None:
    Bookmark.objects.filter(cluster=cluster).update(last_seen_at=at)
    evaluation_round.evaluate_cluster(cluster, now=at)


def open_ones() -> list[tuple[str, str, str]]:
    return list(Finding.objects.open().order_by("rule", "subject").values_list("rule", "subject", "severity"))
