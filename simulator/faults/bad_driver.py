from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar


class Harm(StrEnum):
    CRASH = "crash"  # the driver container dies while it loads the modules
    WORKLOADS = "workloads"  # driver, operands and validator are fine; the tenants' GPU pods crash
    VALIDATOR = "validator"  # nvidia-operator-validator never becomes ready
    GPUS_LOST = "gpus_lost"  # the device plugin advertises fewer GPUs than there are


@dataclass(frozen=True, slots=True)
class BadDriver:
    """A driver that does harm once loaded: on the nodes of one kernel (all when empty), or on one node."""

    version: str
    kernel: str = ""
    how: Harm = Harm.WORKLOADS
    gpus: int = 1
    node: str = ""
    key: ClassVar[str] = "bad_driver"

    def __post_init__(self) -> None:
        object.__setattr__(self, "how", Harm(self.how))
        object.__setattr__(self, "gpus", int(self.gpus))

    def strikes(self, *, driver: str, kernel: str, node: str) -> bool:
        return driver == self.version and self.kernel in ("", kernel) and self.node in ("", node)
