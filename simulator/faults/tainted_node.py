from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class TaintedNode:
    """A node has a taint that no operand tolerates: none starts there, and NoExecute ends those that run."""

    node: str
    taint: str = "dedicated"
    value: str = "research"
    effect: str = "NoSchedule"
    key: ClassVar[str] = "tainted_node"

    def __post_init__(self) -> None:
        if self.effect not in ("NoSchedule", "NoExecute"):
            raise ValueError(f"effect {self.effect!r} is neither NoSchedule nor NoExecute")
