"""A GPU's PCIe link retransmits: the cause is a riser, a cable, a slot or the board."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from health.rules.base import Problem
from health.rules.gpus.base import GpuFacts, measured
from health.rules.limits import Limits, Scale, beyond
from health.rules.steps import REPLACE
from health.telemetry.snapshot import TelemetrySnapshot
from health.telemetry.snapshot_memory import grown_an_hour
from wording.reports import fit

METRIC = "pcie_replays"
# Of the last half to whole hour. Ours: a sound link has a few a day.
ITS_OWN = Limits(100, None, timedelta(minutes=5))


@dataclass(frozen=True)
class PcieReplays:
    key: ClassVar[str] = "gpu-pcie-replays"
    title: ClassVar[str] = "PCIe link retransmits"
    metrics: ClassVar[tuple[str, ...]] = (METRIC,)
    scale: ClassVar[Scale] = Scale("replays an hour", 1, 100_000)
    steps: ClassVar[tuple[str, ...]] = (
        "Check the link's width and speed (LnkSta in lspci -vv), and the kernel log for AER.",
        "Have the board or its riser reseated in the next maintenance.",
        REPLACE,
    )
    limits: Limits = ITS_OWN

    @property
    def after(self) -> timedelta:
        return self.limits.warn_after

    def suspects(self, snapshot: TelemetrySnapshot) -> Iterable[int]:
        return grown_an_hour(snapshot, METRIC, self.limits.warn)

    def evaluate(self, gpu: GpuFacts) -> Problem | None:
        grown = gpu.grown.get(METRIC)
        if grown is None or grown.an_hour < self.limits.warn:
            return None
        return beyond(
            self,
            grown.an_hour,
            title=fit("PCIe link of {} retransmits", gpu.name),
            summary="Transfers to the GPU are slower.",
            evidence=(measured(METRIC, grown.an_hour, self.scale.unit),),
            facts={METRIC: grown.an_hour},
            causes=("A riser, a cable, a slot or the board is faulty.",),
        )
