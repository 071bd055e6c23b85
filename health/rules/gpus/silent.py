"""One GPU of a node has no series any more, while the others do: it fell off the bus, or the driver lost it."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from itertools import groupby
from typing import ClassVar

from gpu.resources.names import tool_of
from health.rules.base import Problem, Severity
from health.rules.gpus.base import GpuFacts
from health.rules.steps import DRAIN, NOTIFY, REBOOT, SAVE_LOGS, UNCORDON
from health.telemetry.base import STALE_AFTER_S
from health.telemetry.snapshot import TelemetrySnapshot
from wording.reports import EvidenceItem, fit


@dataclass(frozen=True)
class GpuSilent:
    key: ClassVar[str] = "gpu-silent"
    title: ClassVar[str] = "GPU is silent"
    after: ClassVar[timedelta] = timedelta(minutes=1)
    metrics: ClassVar[tuple[str, ...]] = ()  # whatever there is
    steps: ClassVar[tuple[str, ...]] = (
        NOTIFY,
        "Look for the GPU in lspci and the vendor's tool (nvidia-smi) on the node.",
        "If both list it, read the exporter's log and restart the exporter's pod.",
        SAVE_LOGS,
        DRAIN,
        REBOOT,
        UNCORDON,
    )

    def suspects(self, snapshot: TelemetrySnapshot) -> Iterable[int]:
        """Returns boards without a fresh sample on nodes that have some."""
        newest, oldest = snapshot.newest, snapshot.taken_at - STALE_AFTER_S
        if min(newest, default=oldest) >= oldest:  # everybody speaks, as nearly always
            return
        for _, places in groupby(range(len(snapshot.devices)), key=lambda place: snapshot.devices[place].node_name):
            on_node = list(places)
            if any(newest[place] >= oldest for place in on_node):
                yield from (place for place in on_node if not newest[place] >= oldest)

    def evaluate(self, gpu: GpuFacts) -> Problem | None:
        if gpu.now:
            return None
        xid = gpu.xid.number if gpu.xid and gpu.xid.number else None
        find = f"Look for the GPU in lspci and {tool_of(gpu.vendor)} on the node."
        return Problem(
            severity=Severity.CRITICAL,
            title=fit("{} is silent", gpu.name),
            summary="Its exporter has no series of it any more. The node's other GPUs have theirs.",
            evidence=(EvidenceItem("Last Xid", xid),) if xid else (),
            causes=("The GPU fell off the bus. It returns only with a reboot, if at all.", "Its driver lost it."),
            steps=(NOTIFY, find, *self.steps[2:]),
            facts={"xid": gpu.xid.number if gpu.xid else None},
            identity=f"silent {xid or ''}".rstrip(),
        )
