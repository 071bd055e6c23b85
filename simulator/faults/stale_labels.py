from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class StaleLabels:
    """What GPU feature discovery says of a node is not written any more: its labels stay as they are.

    In life the worker or the master of node feature discovery is down, which writes what the former finds.
    """

    node: str
    key: ClassVar[str] = "stale_labels"
