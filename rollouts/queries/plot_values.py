"""A plot of the numbers behind a gate."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from rollouts.gates.base import Gate
from rollouts.models import Stage


class Point(NamedTuple):
    at: datetime
    value: float
    name: str = ""  # of its node; blank: of all together


@dataclass(frozen=True)
class GatePlot:
    gate: Gate
    stage: Stage
    unit: str
    query: str  # measured expression, path or text
    points: Sequence[Point] = ()  # the oldest first; of one time, the highest last
    limits: Sequence[tuple[str, float]] = ()
    baseline: Sequence[float] = ()  # values of the baseline; empty: no baseline
    changes: Sequence[datetime] = ()  # of nodes
    newest_at: datetime | None = None  # the newest sample; None: there is none
    why_empty: str = ""  # why there is no point; blank: there is

    @property
    def is_quiet(self) -> bool:
        """Returns whether every sample is zero, as its limit demands."""
        return (
            bool(self.points) and not any(point.value for point in self.points) and not any(v for _, v in self.limits)
        )
