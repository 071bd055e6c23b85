from dataclasses import dataclass
from typing import ClassVar

from simulator.faults.strain import EVERY_GPU, OnGpu, Strain


@dataclass(frozen=True, slots=True)
class IdleHolder(OnGpu):
    """GPUs that a pod holds and does nothing with."""

    gpu: int = EVERY_GPU
    key: ClassVar[str] = "idle_holder"

    def bear(self, strain: Strain, *, on_s: float, is_reset: bool) -> None:
        del on_s, is_reset
        strain.work_ratio = 0.0
