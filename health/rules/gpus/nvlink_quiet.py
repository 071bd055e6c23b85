"""A GPU sends far less over NVLink than the others of its job: a link is down, or the job leaves it out.

Only where one pod has all GPUs of a node: GPUs of several pods have nothing to say to each other.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from health.rules.base import Severity, Wrong
from health.rules.gpus.base import GpuFacts
from health.telemetry.frame import Frame
from health.telemetry.peers import far_below_peers

METRIC = "nvlink_mib_per_s"
BUSY = ("engine_active_ratio", "gpu_utilisation_ratio")  # the first is believed where there are both
IDLE = 0.05


@dataclass(frozen=True)
class NvlinkQuiet:
    key: ClassVar[str] = "gpu-nvlink-quiet"
    title: ClassVar[str] = "NVLink traffic far below its peers"
    after: ClassVar[timedelta] = timedelta(minutes=10)
    metrics: ClassVar[tuple[str, ...]] = (METRIC,)
    share: float = 0.2  # of the median of its peers

    def suspects(self, frame: Frame) -> Iterable[int]:
        """Whom its job leaves idle is far below its peers on every fleet, and well."""
        busy = [column.values for key in BUSY if (column := frame.columns.get(key))]
        below = far_below_peers(frame, METRIC, self.share)
        return [place for place in below if any(values[place] >= IDLE for values in busy)]

    def judge(self, gpu: GpuFacts) -> Wrong | None:
        sent, peers = gpu.now.get(METRIC), gpu.peers.get(METRIC)
        if not gpu.is_of_one_job or sent is None or peers is None or sent >= peers * self.share:
            return None
        if next((gpu.now[key] for key in BUSY if key in gpu.now), 0.0) < IDLE:
            return None
        return Wrong(
            Severity.WARNING,
            f"{gpu.name} works, and sends less than {self.share:.0%} of what its node's other GPUs send over NVLink.",
            "Compare nvidia-smi nvlink -s and topo -m with a sound node: a link that is down makes whole jobs slow. "
            "Where the job leaves this GPU out by design, mute it here.",
            {METRIC: sent, "peers_median": peers, "share": self.share},
            why="below",
        )
