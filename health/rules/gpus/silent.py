"""One GPU of a node has no series any more, while the others do: it fell off the bus, or the driver lost it."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from itertools import groupby
from typing import ClassVar

from gpu.resources.names import tool_of
from health.rules.base import Severity, Wrong
from health.rules.gpus.base import GpuFacts
from health.telemetry.base import STALE_AFTER_S
from health.telemetry.snapshot import TelemetrySnapshot


@dataclass(frozen=True)
class GpuSilent:
    key: ClassVar[str] = "gpu-silent"
    title: ClassVar[str] = "GPU is silent"
    after: ClassVar[timedelta] = timedelta(minutes=1)
    metrics: ClassVar[tuple[str, ...]] = ()  # whatever there is

    def suspects(self, snapshot: TelemetrySnapshot) -> Iterable[int]:
        """Returns boards without a fresh sample on nodes that have some."""
        newest, oldest = snapshot.newest, snapshot.taken_at - STALE_AFTER_S
        if min(newest, default=oldest) >= oldest:  # everybody speaks, as nearly always
            return
        for _, places in groupby(range(len(snapshot.devices)), key=lambda place: snapshot.devices[place].node_name):
            on_node = list(places)
            if any(newest[place] >= oldest for place in on_node):
                yield from (place for place in on_node if not newest[place] >= oldest)

    def evaluate(self, gpu: GpuFacts) -> Wrong | None:
        if gpu.now:
            return None
        xid = f" Its last Xid was {gpu.xid.number}." if gpu.xid and gpu.xid.number else ""
        return Wrong(
            Severity.CRITICAL,
            f"{gpu.name} has no series of its exporter any more, while the node's other GPUs have.{xid}",
            f"Look for it in lspci and {tool_of(gpu.vendor)} on the node. A GPU that fell off the bus returns only "
            "with a reboot, if at all. Drain the node first.",
            {"xid": gpu.xid.number if gpu.xid else None},
            why="silent" + xid,
            probable_cause="It fell off the bus, or its driver lost it.",
        )
