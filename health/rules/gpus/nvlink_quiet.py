"""A GPU sends far less over NVLink than the other GPUs of its job: a link is down, or the job does not use it.

The rule applies only where one pod has all GPUs of a node. GPUs of several pods do not communicate.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from health.rules.base import Problem
from health.rules.gpus.base import GpuFacts, measured
from health.rules.limits import Limits, Scale, beyond
from health.rules.steps import DRAIN, RESET, UNCORDON
from health.telemetry.metrics import METRICS
from health.telemetry.peers import far_below_peers
from health.telemetry.snapshot import TelemetrySnapshot
from wording.reports import EvidenceItem, fit

METRIC = "nvlink_mib_per_s"
BUSY = ("engine_active_ratio", "gpu_utilisation_ratio")  # the first is believed where there are both
IDLE = 0.05
PEERS = "peers_median"
ITS_OWN = Limits(80, None, timedelta(minutes=10))  # ours


@dataclass(frozen=True)
class NvlinkQuiet:
    key: ClassVar[str] = "gpu-nvlink-quiet"
    title: ClassVar[str] = "NVLink traffic far below its peers"
    metrics: ClassVar[tuple[str, ...]] = (METRIC,)
    scale: ClassVar[Scale] = Scale(
        "% less than its node’s other GPUs", 10, 99, metric=METRIC, percent_of=(PEERS,), is_less=True
    )
    steps: ClassVar[tuple[str, ...]] = (
        "Compare nvidia-smi nvlink -s and nvidia-smi topo -m with a healthy node.",
        "If no link is down, ask the owner whether the job leaves this GPU out. Then mute the finding.",
        "If a link is down, continue with the next steps.",
        DRAIN,
        RESET,
        UNCORDON,
    )
    limits: Limits = ITS_OWN

    @property
    def after(self) -> timedelta:
        return self.limits.warn_after

    @property
    def share(self) -> float:
        """Returns the limit as a share of the median of its peers. GPUs below it are reported."""
        return 1 - self.limits.warn / 100

    def suspects(self, snapshot: TelemetrySnapshot) -> Iterable[int]:
        """Returns GPUs far below their peers. Every fleet has healthy ones that their job leaves idle."""
        busy = [column.values for key in BUSY if (column := snapshot.columns.get(key))]
        below = far_below_peers(snapshot, METRIC, self.share)
        return [place for place in below if any(values[place] >= IDLE for values in busy)]

    def evaluate(self, gpu: GpuFacts) -> Problem | None:
        sent, peers = gpu.now.get(METRIC), gpu.peers.get(METRIC)
        if not gpu.is_of_one_job or sent is None or peers is None or sent >= peers * self.share:
            return None
        if next((gpu.now[key] for key in BUSY if key in gpu.now), 0.0) < IDLE:
            return None
        return beyond(
            self,
            100 * (1 - sent / peers),
            title=fit("{} sends little over NVLink", gpu.name),
            summary="It is busy, and sends far less than the node's other GPUs.",
            evidence=(measured(METRIC, sent), EvidenceItem("Median of the node", peers, METRICS[METRIC].unit)),
            facts={METRIC: sent, PEERS: peers},
            causes=("A link is down and slows whole jobs.", "The job does not use this GPU."),
        )
