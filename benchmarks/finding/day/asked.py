"""Which day is lived."""

from dataclasses import dataclass


@dataclass(frozen=True)
class DayAsked:
    seed: int
    nodes: int
    hours: float
    only: int | None = None  # the number of a plant: it alone

    @property
    def again(self) -> str:
        """What lives it once more."""
        return f"bin/bench findings --seed {self.seed} --nodes {self.nodes} --hours {self.hours:g}"
