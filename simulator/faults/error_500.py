from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class Error500:
    """A share of all requests fails with `code`; `path` narrows it to URLs that contain it."""

    code: int = 500
    share: float = 1.0
    path: str = ""
    key: ClassVar[str] = "error_500"

    def __post_init__(self) -> None:
        object.__setattr__(self, "code", int(self.code))
        object.__setattr__(self, "share", float(self.share))
