from dataclasses import dataclass
from typing import ClassVar

from simulator.faults.strain import EVERY_GPU, OnGpu, not_negative


@dataclass(frozen=True, slots=True)
class FailingWorkload(OnGpu):
    """Pods that use GPUs fail on one node, or with one GPU of it; of the same template they run elsewhere.

    `pods`: what their names begin with. One that is not started again has run for `after_s` seconds by then.
    """

    gpu: int = EVERY_GPU
    exit_code: int = 1
    says: str = "RuntimeError: NCCL error: unhandled cuda error"
    pods: str = ""
    after_s: float = 300.0
    key: ClassVar[str] = "failing_workload"

    def __post_init__(self) -> None:
        OnGpu.__post_init__(self)
        object.__setattr__(self, "exit_code", int(self.exit_code))
        object.__setattr__(self, "after_s", not_negative("after_s", self.after_s))
