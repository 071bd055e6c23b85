from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class FlappingNode:
    """A node whose Ready condition comes and goes; times are seconds of cluster time."""

    node: str
    ready_s: float = 60
    unready_s: float = 30
    key: ClassVar[str] = "flapping_node"

    def __post_init__(self) -> None:
        object.__setattr__(self, "ready_s", float(self.ready_s))
        object.__setattr__(self, "unready_s", float(self.unready_s))
