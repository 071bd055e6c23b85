from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class HeldDriver:
    """A program on a node uses its GPUs, and no pod that asked for any: a runtime class does, a DaemonSet, or the host.

    Nobody who empties the node knows of it, and the driver's modules cannot be unloaded.
    """

    node: str
    key: ClassVar[str] = "held_driver"
