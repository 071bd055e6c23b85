"""A GPU's PCIe link retransmits: the cause is a riser, a cable, a slot or the board."""

from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from health.rules.gpus.counters import CounterRule
from health.rules.limits import Limits, Scale
from health.rules.steps import REPLACE

METRIC = "pcie_replays"
# Of the last half to whole hour. Ours: a sound link has a few a day.
ITS_OWN = Limits(100, None, timedelta(minutes=5))


@dataclass(frozen=True)
class PcieReplays(CounterRule):
    key: ClassVar[str] = "gpu-pcie-replays"
    title: ClassVar[str] = "PCIe link retransmits"
    metrics: ClassVar[tuple[str, ...]] = (METRIC,)
    scale: ClassVar[Scale] = Scale("replays an hour", 1, 100_000)
    steps: ClassVar[tuple[str, ...]] = (
        "Check the link's width and speed (LnkSta in lspci -vv), and the kernel log for AER.",
        "Have the board or its riser reseated in the next maintenance.",
        REPLACE,
    )
    titled: ClassVar[str] = "PCIe link of {} retransmits"
    summary: ClassVar[str] = "Transfers to the GPU are slower."
    cause: ClassVar[str] = "A riser, a cable, a slot or the board is faulty."
    limits: Limits = ITS_OWN
