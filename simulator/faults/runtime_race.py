from dataclasses import dataclass
from typing import ClassVar

from simulator.faults.strain import not_negative


@dataclass(frozen=True, slots=True)
class RuntimeRace:
    """A node that was started anew, and whose kubelet is up before its container runtime.

    It says that it has been rebooted, is not ready for `seconds` of cluster time while the runtime is down, and turns
    away the pods that had held its GPUs, whose plugin is not there yet.
    """

    node: str
    seconds: float = 90.0
    key: ClassVar[str] = "runtime_race"

    def __post_init__(self) -> None:
        object.__setattr__(self, "seconds", not_negative("seconds", self.seconds))
