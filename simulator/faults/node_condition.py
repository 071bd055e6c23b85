from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class NodeCondition:
    """A program that watches nodes says that something is wrong with one: a condition that is true while it is.

    NVSentinel's (`GpuMemWatch`, `SysLogsXIDError`, `GpuDcgmConnectivityFailure`), node-problem-detector's
    (`KernelDeadlock`, `FrequentContainerdRestart`), or anybody's. Left empty, reason and message are NVSentinel's.
    """

    node: str
    type: str = "GpuMemWatch"
    reason: str = ""
    message: str = ""
    key: ClassVar[str] = "node_condition"

    def __post_init__(self) -> None:
        if not self.type.isalnum() or self.type == "Ready":
            raise ValueError(f"type {self.type!r} is no word, or the kubelet's own")
