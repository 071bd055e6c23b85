"""Physical GPUs of some part of the fleet, and what is made of them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from fleet.models import Node
from gpu.resources import Use, Uses, known_gpus
from gpu.resources.physical import COLUMNS, TITLES


@dataclass
class Physical:
    """Every GPU once, by its use. What GPU nodes have of which nobody knows how many is in none of the numbers."""

    uses: dict[Use, int] = field(default_factory=dict)
    uncounted: int = 0  # such nodes

    @classmethod
    def of(cls, row: Mapping[str, int]) -> "Physical":
        """Sums that are named as their columns."""
        return cls({use: row[column] for use, column in COLUMNS.items() if row[column]}, row["uncounted"])

    def add(self, other: "Physical") -> None:
        for use, number in other.uses.items():
            self.uses[use] = self.uses.get(use, 0) + number
        self.uncounted += other.uncounted

    @property
    def total(self) -> int:
        return sum(self.uses.values())

    @property
    def known(self) -> int | None:
        """None: of no node it is known how many it has."""
        return known_gpus(self.total, uncounted=self.uncounted)

    @property
    def parts(self) -> list[tuple[str, int]]:
        """What is made of them, by its title: nothing that is 0."""
        return [(TITLES[use], self.uses[use]) for use in Use if self.uses.get(use)]

    @property
    def words(self) -> str:
        """`2560 whole, 512 MIG, 504 time-slicing`; blank where all are whole."""
        return "" if set(self.uses) <= {Use.WHOLE} else ", ".join(f"{number} {title}" for title, number in self.parts)


def physical_of(nodes: Iterable[Node]) -> Physical:
    """Of rows that are read already."""
    found = Physical()
    for node in nodes:
        found.add(Physical(dict(node.uses), int(node.is_gpu_node and node.physical_gpus is None)))
    return found


def by_use(uses: Uses) -> dict[str, int]:
    """Each use, also those of which there is none: what REST and metrics name."""
    return {use.value: uses.get(use, 0) for use in Use}
