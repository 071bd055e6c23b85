"""Errors on a GPU's NVLinks, as in Xid 74 and 144 to 150. Not exported by default (Z23)."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from health.rules.base import Severity, Wrong
from health.rules.gpus.base import GpuFacts
from health.rules.limits import Limits, Scale
from health.telemetry.snapshot import TelemetrySnapshot
from health.telemetry.snapshot_memory import grown_an_hour, grown_by

FLIT, DATA, REPLAYS, RECOVERIES = "nvlink_flit_errors", "nvlink_data_errors", "nvlink_replays", "nvlink_recoveries"
# Of the last half to whole hour; of recoveries one is enough, and critical. Ours.
ITS_OWN = Limits(100, None, timedelta(minutes=1), timedelta(minutes=1))


@dataclass(frozen=True)
class NvlinkErrors:
    key: ClassVar[str] = "gpu-nvlink-errors"
    title: ClassVar[str] = "NVLink errors"
    metrics: ClassVar[tuple[str, ...]] = (FLIT, DATA, REPLAYS, RECOVERIES)
    scale: ClassVar[Scale] = Scale("CRC errors or replays an hour", 1, 100_000)
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

    def evaluate(self, gpu: GpuFacts) -> Wrong | None:
        known = {key: grown for key in self.metrics if (grown := gpu.grown.get(key)) is not None}
        amounts = {key: grown.amount if key == RECOVERIES else grown.an_hour for key, grown in known.items()}
        has_recovered, limits = amounts.get(RECOVERIES, 0) >= 1, self.limits
        worst = max((amounts.get(key, 0) for key in (FLIT, DATA, REPLAYS)), default=0)
        if not has_recovered and worst < limits.warn:
            return None
        is_critical = has_recovered or limits.is_critical(worst)
        limit = limits.reached(worst)
        return Wrong(
            Severity.CRITICAL if is_critical else Severity.WARNING,
            f"{gpu.name} has errors on its NVLinks"
            + (
                ", and a link had to recover."
                if has_recovered
                else f", {limit:g} an hour or more{limits.describe(is_critical=is_critical)}."
            ),
            "Jobs on several GPUs of this node are slow or hang. Read nvidia-smi nvlink -e and the "
            "Fabric Manager's log. Drain the node and reset the GPU. If the errors return, reseat or "
            "replace it.",
            amounts | limits.evidence,
            why="recovered" if has_recovered else f"{limit:g} {limits.whose}",
            worsens_after=timedelta(0) if has_recovered else limits.critical_after,
            opens_after=limits.after(is_critical=is_critical),
        )
