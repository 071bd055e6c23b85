from dataclasses import dataclass
from typing import ClassVar

from simulator.faults.strain import OnGpu, pause


@dataclass(frozen=True, slots=True)
class GpuResets(OnGpu):
    """A GPU that is reset under its exporter, at once and then every `every_s` seconds; 0: once.

    What it has counted since its driver was loaded begins at nothing again.
    """

    every_s: float = 0.0
    key: ClassVar[str] = "gpu_resets"

    def __post_init__(self) -> None:
        OnGpu.__post_init__(self)
        object.__setattr__(self, "every_s", pause("every_s", self.every_s))

    def resets(self, after_s: float, until_s: float) -> int:
        """How often, after the one and not after the other."""
        if not self.every_s:
            return int(after_s < 0 <= until_s)
        return int(until_s // self.every_s) - (-1 if after_s < 0 else int(after_s // self.every_s))
