from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class ApiGone:
    """Nothing listens for a while: open connections break, new ones are refused."""

    seconds: float = 60.0
    key: ClassVar[str] = "api_gone"

    def __post_init__(self) -> None:
        object.__setattr__(self, "seconds", float(self.seconds))
