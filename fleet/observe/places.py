"""What the kinds tell each other: which nodes, namespaces and objects make another object worth keeping."""

from collections.abc import Callable
from dataclasses import dataclass, field


def _nothing(_: str) -> bool:
    return False


@dataclass
class Places:
    gpu_nodes: set[str] = field(default_factory=set)
    operator_namespaces: set[str] = field(default_factory=set)
    is_mirrored: Callable[[str], bool] = _nothing  # whether there is a row of this uid, of a pod or of an owner
