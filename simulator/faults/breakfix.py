from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class Breakfix:
    """NVSentinel cordons a node for an Xid, and waits for its pods. An uncordon cancels that for good."""

    node: str
    xid: int = 79
    key: ClassVar[str] = "breakfix"
