from dataclasses import dataclass
from typing import ClassVar

MOST_SERIES = 200_000


@dataclass(frozen=True, slots=True)
class SeriesExplosion:
    """The exporter of a node has a label that is new each time it is asked: so many series more with every answer."""

    node: str
    series: int = 20_000
    key: ClassVar[str] = "series_explosion"

    def __post_init__(self) -> None:
        object.__setattr__(self, "series", int(self.series))
        if not 1 <= self.series <= MOST_SERIES:
            raise ValueError(f"series is from 1 to {MOST_SERIES}")
