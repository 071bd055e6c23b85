"""Errors on a GPU's NVLinks, as in Xid 74 and 144 to 150. Not exported by default (Z23)."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import ClassVar

from health.rules.base import Problem, Severity
from health.rules.gpus.base import GpuFacts, measured
from health.rules.limits import Limits, Scale, beyond
from health.rules.steps import DRAIN, REPLACE, RESET, UNCORDON
from health.telemetry.snapshot import TelemetrySnapshot
from health.telemetry.snapshot_memory import grown_an_hour, grown_by
from wording.reports import fit

FLIT, DATA, REPLAYS, RECOVERIES = "nvlink_flit_errors", "nvlink_data_errors", "nvlink_replays", "nvlink_recoveries"
# Of the last half to whole hour; of recoveries one is enough, and critical. Ours.
ITS_OWN = Limits(100, None, timedelta(minutes=1), timedelta(minutes=1))


@dataclass(frozen=True)
class NvlinkErrors:
    key: ClassVar[str] = "gpu-nvlink-errors"
    title: ClassVar[str] = "NVLink errors"
    metrics: ClassVar[tuple[str, ...]] = (FLIT, DATA, REPLAYS, RECOVERIES)
    scale: ClassVar[Scale] = Scale("CRC errors or replays an hour", 1, 100_000)
    steps: ClassVar[tuple[str, ...]] = (
        "Find the link: nvidia-smi nvlink -e on the node, and the Fabric Manager's log.",
        "Check the GPU at the other end. If it has errors too, suspect the link or a switch, not this board.",
        DRAIN,
        RESET,
        "If the errors return, have the board reseated.",
        REPLACE,
        UNCORDON,
    )
    limits: Limits = ITS_OWN

    @property
    def after(self) -> timedelta:
        return self.limits.warn_after

    def suspects(self, snapshot: TelemetrySnapshot) -> Iterable[int]:
        return {
            *grown_an_hour(snapshot, FLIT, self.limits.warn),
            *grown_an_hour(snapshot, DATA, self.limits.warn),
            *grown_an_hour(snapshot, REPLAYS, self.limits.warn),
            *grown_by(snapshot, RECOVERIES, 1),
        }

    def evaluate(self, gpu: GpuFacts) -> Problem | None:
        known = {key: grown for key in self.metrics if (grown := gpu.grown.get(key)) is not None}
        amounts = {key: grown.amount if key == RECOVERIES else grown.an_hour for key, grown in known.items()}
        has_recovered, limits = amounts.get(RECOVERIES, 0) >= 1, self.limits
        worst = max((amounts.get(key, 0) for key in (FLIT, DATA, REPLAYS)), default=0)
        if not has_recovered and worst < limits.warn:
            return None
        found = beyond(
            self,
            worst,
            title=fit("{} has NVLink errors", gpu.name),
            summary="Jobs on several GPUs of the node are slow or hang.",
            evidence=tuple(
                measured(key, amount, "" if key == RECOVERIES else "an hour") for key, amount in amounts.items()
            ),
            facts=amounts,
        )
        if not has_recovered:
            return found
        return replace(
            found,
            severity=Severity.CRITICAL,
            summary="A link had to recover. Jobs on several GPUs of the node are slow or hang.",
            identity="recovered",
            worsens_after=timedelta(0),
            opens_after=limits.after(is_critical=True),
        )
