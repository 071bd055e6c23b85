from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar


class Lie(StrEnum):
    GPUS = "gpus"  # it names the GPUs of another node
    HOSTNAME = "hostname"  # it has another name for its own node


@dataclass(frozen=True, slots=True)
class LyingExporter:
    """The exporter of a node says that it is another one. `as_node`: the name it gives, or whose GPUs."""

    node: str
    as_node: str = "localhost"
    how: Lie = Lie.HOSTNAME
    key: ClassVar[str] = "lying_exporter"

    def __post_init__(self) -> None:
        object.__setattr__(self, "how", Lie(self.how))
