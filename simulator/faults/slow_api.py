from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class SlowApi:
    """The API server takes its time before it answers; `path` narrows it to URLs that contain it."""

    delay_s: float = 2.0
    path: str = ""
    key: ClassVar[str] = "slow_api"

    def __post_init__(self) -> None:
        object.__setattr__(self, "delay_s", float(self.delay_s))
