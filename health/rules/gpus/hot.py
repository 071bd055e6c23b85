"""A GPU is so hot that it slows down, or soon will: 83 °C for five minutes, or 85 °C. For AMD 95 and 100 °C.

AMD's value is the hottest spot of the die, which may be hotter.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import ClassVar

from gpu.resources.names import Vendor
from health.rules.base import Problem
from health.rules.gpus.base import GpuFacts, devices_at_least, measured
from health.rules.limits import Limits, Scale, beyond
from health.telemetry.snapshot import TelemetrySnapshot
from wording.reports import fit

METRIC = "temperature_celsius"
ITS_OWN = Limits(83, 85, timedelta(minutes=5), timedelta(minutes=5))
# amd-smi static --limit of an Instinct: SLOWDOWN_HOTSPOT_TEMPERATURE 100 °C, SHUTDOWN_HOTSPOT_TEMPERATURE 110 °C. The
# five limits below are our choice. Each Gaudi exports its own limit in habanalabs_temperature_threshold_slowdown.
OF_VENDOR: Mapping[str, Limits] = {Vendor.AMD: Limits(95, 100, timedelta(minutes=5), timedelta(minutes=5))}


@dataclass(frozen=True)
class Hot:
    key: ClassVar[str] = "gpu-hot"
    title: ClassVar[str] = "GPU too hot"
    metrics: ClassVar[tuple[str, ...]] = (METRIC,)
    scale: ClassVar[Scale] = Scale("°C", 40, 110, metric=METRIC)
    steps: ClassVar[tuple[str, ...]] = (
        "Compare the node's other GPUs. If they are hot too, check the air: inlet, fans, a blocked rack.",
        "If only this GPU is hot, compare its power limit (nvidia-smi -q -d POWER). Then check its cooler.",
        "If it continues, quarantine the node in Quarterdeck. By hand: kubectl cordon NODE",
    )
    limits: Limits = ITS_OWN

    @property
    def after(self) -> timedelta:
        return self.limits.warn_after

    def suspects(self, snapshot: TelemetrySnapshot) -> Iterable[int]:
        return devices_at_least(snapshot, METRIC, self.limits.warn)

    def evaluate(self, gpu: GpuFacts) -> Problem | None:
        limits = (
            OF_VENDOR.get(gpu.vendor, self.limits) if self.limits is ITS_OWN else self.limits
        )  # a pool's apply to every vendor
        celsius = gpu.now.get(METRIC)
        if celsius is None or celsius < limits.warn:
            return None
        return beyond(
            replace(self, limits=limits),
            celsius,
            title=fit("{} is too hot", gpu.name),
            summary=f"It has {limits.reached(celsius):g} °C or more. The GPU slows down before it is damaged.",
            evidence=(measured(METRIC, celsius),),
            facts={METRIC: celsius},
            causes=(
                "If the node's other GPUs are hot too: the air (inlet, fans, a blocked rack).",
                "If only this GPU is hot: its cooler or its power limit.",
            ),
        )
