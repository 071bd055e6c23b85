"""A GPU sends far less over NVLink than the others of its node: a link is down, or it does not take part in the job."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from health.rules.base import Severity, Wrong
from health.rules.gpus.base import GpuFacts
from health.telemetry.frame import Frame
from health.telemetry.peers import far_below_peers

METRIC = "nvlink_traffic"


@dataclass(frozen=True)
class NvlinkQuiet:
    key: ClassVar[str] = "gpu-nvlink-quiet"
    title: ClassVar[str] = "NVLink traffic far below its peers"
    after: ClassVar[timedelta] = timedelta(minutes=10)
    metrics: ClassVar[tuple[str, ...]] = (METRIC,)
    share: float = 0.2  # of the median of its peers

    def suspects(self, frame: Frame) -> Iterable[int]:
        return far_below_peers(frame, METRIC, self.share)

    def judge(self, gpu: GpuFacts) -> Wrong | None:
        grown, peers = gpu.grown.get(METRIC), gpu.peers.get(METRIC)
        if grown is None or peers is None or peers <= 0 or grown.amount >= peers * self.share:
            return None
        if gpu.now.get("engine_active_ratio", gpu.now.get("gpu_utilisation_ratio", 0.0)) < 0.05:
            return None  # it is idle, and its peers have work of their own
        return Wrong(
            Severity.WARNING,
            f"{gpu.name} works, and sends less than {self.share:.0%} of what its node's other GPUs send over NVLink.",
            "Compare nvidia-smi nvlink -s and topo -m with a sound node: a link that is down makes whole jobs slow. "
            "Where the job leaves this GPU out by design, mute it here.",
            {METRIC: grown.amount, "peers_median": peers, "share": self.share},
            why="below",
        )
