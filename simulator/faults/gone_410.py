from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class Gone410:
    """The API server forgets its past once: every watch and every list half read answers 410."""

    key: ClassVar[str] = "gone_410"
