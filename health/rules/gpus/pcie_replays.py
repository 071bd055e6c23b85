"""A GPU's PCIe link repeats what it sends: a riser, a cable, a slot, or the board."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from health.rules.base import Severity, Wrong
from health.rules.gpus.base import GpuFacts
from health.telemetry.frame import Frame
from health.telemetry.remembering import grown_by

METRIC = "pcie_replays"


@dataclass(frozen=True)
class PcieReplays:
    key: ClassVar[str] = "gpu-pcie-replays"
    title: ClassVar[str] = "PCIe link repeats itself"
    after: ClassVar[timedelta] = timedelta(minutes=5)
    metrics: ClassVar[tuple[str, ...]] = (METRIC,)
    most: int = 100  # in the last half to whole hour. Ours: a sound link has a few a day

    def suspects(self, frame: Frame) -> Iterable[int]:
        return grown_by(frame, METRIC, self.most)

    def judge(self, gpu: GpuFacts) -> Wrong | None:
        grown = gpu.grown.get(METRIC)
        if grown is None or grown.amount < self.most:
            return None
        return Wrong(
            Severity.WARNING,
            f"{gpu.name} repeats what it sends over PCIe, more than {self.most} times an hour.",
            "Look at the link's width and speed (nvidia-smi -q, lspci -vv) and at the kernel log for AER. Reseat the "
            "board or its riser in the next maintenance; transfers to it are slower until then.",
            {METRIC: grown.amount, "most": self.most},
            why="replays",
        )
