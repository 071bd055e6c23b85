from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class LostGpus:
    """GPUs of one node are gone: they fell off the bus while the plugin ran, or were not there when it started.

    The kubelet then lowers what is allocatable, and of GPUs that were never seen since the boot also the capacity.
    All of them: zero, with the plugin running.
    """

    node: str
    gpus: int = 1
    is_since_boot: bool = False
    key: ClassVar[str] = "lost_gpus"

    def __post_init__(self) -> None:
        object.__setattr__(self, "gpus", int(self.gpus))
        object.__setattr__(self, "is_since_boot", str(self.is_since_boot).lower() == "true")
