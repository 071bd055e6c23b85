from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar


class Silence(StrEnum):
    HANGS = "hangs"  # it takes the request, and nothing comes back
    REFUSES = "refuses"  # nothing listens
    ERROR = "error"  # 500
    EMPTY = "empty"  # 200, and no word
    HTML = "html"  # a page of somebody's proxy
    GARBAGE = "garbage"  # bytes that are no text
    CUT = "cut"  # it ends in the middle of a line
    DRIP = "drip"  # one byte a second


@dataclass(frozen=True, slots=True)
class SilentExporter:
    """The exporter of a node runs, and what it answers says nothing of its GPUs."""

    node: str
    how: Silence = Silence.HANGS
    key: ClassVar[str] = "silent_exporter"

    def __post_init__(self) -> None:
        object.__setattr__(self, "how", Silence(self.how))
