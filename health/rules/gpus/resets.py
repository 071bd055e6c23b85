"""A GPU is reset again and again, so resets do not fix the fault. The rule detects counters that restart on one GPU."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from health.rules.base import Problem, Severity
from health.rules.gpus.base import GpuFacts
from health.rules.steps import DIAGNOSE, DRAIN, REPLACE, SAVE_LOGS, UNCORDON
from health.telemetry.snapshot import TelemetrySnapshot
from health.telemetry.snapshot_memory import ENERGY, begun_lately, reporting_devices
from wording.reports import EvidenceItem, fit

METRIC = ENERGY  # since the driver was loaded, and exported unless somebody took it out
WITHIN = timedelta(days=1)
TIMES = 3  # our choice: an Xid may need one reset, and a second reset tests the repair


@dataclass(frozen=True)
class Resets:
    key: ClassVar[str] = "gpu-resets"
    title: ClassVar[str] = "GPU reset repeatedly"
    after: ClassVar[timedelta] = timedelta(0)  # several resets took time already
    metrics: ClassVar[tuple[str, ...]] = (METRIC,)
    steps: ClassVar[tuple[str, ...]] = (
        "Check the node's timeline for the cause and author of each reset.",
        "If the GPU had no fault, stop the resets.",
        "If an Xid or memory errors return each time, resets do not help. Continue with the next steps.",
        SAVE_LOGS,
        DRAIN,
        DIAGNOSE,
        REPLACE,
        UNCORDON,
    )

    def suspects(self, snapshot: TelemetrySnapshot) -> Iterable[int]:
        """Returns devices whose counters restarted in the last half to whole hour, unless all of their node's did."""
        anew = begun_lately(snapshot)
        if not anew:
            return ()
        go_on = {snapshot.devices[place].node_name for place in set(reporting_devices(snapshot)).difference(anew)}
        return [place for place in anew if snapshot.devices[place].node_name in go_on]

    def evaluate(self, gpu: GpuFacts) -> Problem | None:
        if gpu.resets < TIMES:
            return None
        return Problem(
            severity=Severity.WARNING,
            title=fit("{} was reset {} times within a day", gpu.name, TIMES),
            summary="It was reset alone, while the node's other GPUs were not.",
            evidence=(EvidenceItem("Least number of resets within a day", gpu.resets),),
            facts={"resets": gpu.resets},
            identity="again",
        )
