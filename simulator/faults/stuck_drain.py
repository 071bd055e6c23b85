from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class StuckDrain:
    """Evictions from a node are refused: its pods that use GPUs fall under a budget that allows no disruption."""

    node: str
    key: ClassVar[str] = "stuck_drain"
