from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class LeftPaused:
    """Labels that say `paused-for-driver-upgrade`, left behind: no upgrade runs, and the operands stay away.

    `operand`: the one, by the end of its label (`device-plugin`); empty: all that were there.
    """

    node: str
    operand: str = ""
    key: ClassVar[str] = "left_paused"
