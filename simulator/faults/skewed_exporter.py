from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class SkewedExporter:
    """The exporter of a node writes times beside its values, of a clock that is so many seconds ahead, or behind."""

    node: str
    seconds: float = 3600.0
    key: ClassVar[str] = "skewed_exporter"

    def __post_init__(self) -> None:
        object.__setattr__(self, "seconds", float(self.seconds))
