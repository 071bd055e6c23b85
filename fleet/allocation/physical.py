"""Physical GPUs of a part of the fleet by use."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from fleet.models import Node
from gpu.resources import Use, Uses, known_gpus
from gpu.resources.physical import COLUMNS, TITLES


@dataclass
class Physical:
    """The number of physical GPUs by use. Nodes with an unknown number of GPUs are only in `uncounted`."""

    uses: dict[Use, int] = field(default_factory=dict)
    uncounted: int = 0  # nodes with an unknown number of GPUs

    @classmethod
    def of(cls, row: Mapping[str, int]) -> "Physical":
        """Builds the value from sums named like their columns."""
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
        """Returns the total. None: unknown for every node."""
        return known_gpus(self.total, uncounted=self.uncounted)

    @property
    def parts(self) -> list[tuple[str, int]]:
        return [(TITLES[use], self.uses[use]) for use in Use if self.uses.get(use)]

    @property
    def words(self) -> str:
        """Returns `2560 whole, 512 MIG, 504 time-slicing`; blank if all are whole."""
        return "" if set(self.uses) <= {Use.WHOLE} else ", ".join(f"{number} {title}" for title, number in self.parts)


def physical_of(nodes: Iterable[Node]) -> Physical:
    found = Physical()
    for node in nodes:
        found.add(Physical(dict(node.uses), int(node.is_gpu_node and node.physical_gpus is None)))
    return found


def by_use(uses: Uses) -> dict[str, int]:
    return {use.value: uses.get(use, 0) for use in Use}
