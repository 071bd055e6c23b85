from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar


class Answer(StrEnum):
    MISSING = "missing"  # the registry has no such tag
    DENIED = "denied"  # it wants to know who asks: a pull secret of the pod that is there
    AWAY = "away"  # nobody answers


@dataclass(frozen=True, slots=True)
class BadImage:
    """What the registry says to whoever asks for an image with `image` in its name: `driver:580.999`, or all of it."""

    image: str
    node: str = ""
    how: Answer = Answer.MISSING
    key: ClassVar[str] = "bad_image"

    def __post_init__(self) -> None:
        object.__setattr__(self, "how", Answer(self.how))

    def strikes(self, *, image: str, node: str) -> bool:
        return self.image in image and self.node in ("", node)
