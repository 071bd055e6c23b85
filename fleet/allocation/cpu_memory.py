"""CPU and memory requests on nodes: by GPU pods, by operands and by all other pods."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

WHOSE = ("tenants", "operands", "others")
UNITS = (("cpu", "m"), ("memory", "bytes"))
REQUESTED = tuple(f"{what}_{whose}_{unit}" for what, unit in UNITS for whose in WHOSE)  # columns of nodes
SET_BY_PODS = (*REQUESTED, "pods_bound")  # columns of nodes that are counted with their pods
ALLOCATABLE = ("cpu_allocatable_m", "memory_allocatable_bytes")


@dataclass(frozen=True)
class Amount:
    """CPU in millicores, or memory in bytes. None: unknown."""

    allocatable: int | None = None
    tenants: int | None = None  # requested by pods that have or want GPUs
    operands: int | None = None
    others: int | None = None

    @property
    def requested(self) -> int | None:
        said = [each for each in (self.tenants, self.operands, self.others) if each is not None]
        return sum(said) if len(said) == len(WHOSE) else None

    @property
    def free(self) -> int | None:
        """Returns the rest. Negative: the node shrank, or pods were bound without the scheduler."""
        if self.allocatable is None or self.requested is None:
            return None
        return self.allocatable - self.requested


@dataclass(frozen=True)
class CpuMemory:
    cpu: Amount
    memory: Amount
    nodes: int | None = 1
    silent: int | None = 0  # nodes that report no amount; they are not included in allocatable

    @classmethod
    def of(cls, row: Mapping[str, Any], *, knows_pods: bool = True, nodes: int = 1, silent: int = 0) -> "CpuMemory":
        """Builds the value from columns of a node, or from sums with the same names."""
        cpu, memory = (_amount_of_row(row, what, unit) for what, unit in UNITS)
        found = cls(cpu, memory, nodes, silent)
        return found if knows_pods else found.without_pods()

    def without_pods(self) -> "CpuMemory":
        cpu, memory = (Amount(each.allocatable) for each in (self.cpu, self.memory))
        return replace(self, cpu=cpu, memory=memory)


@dataclass(frozen=True)
class OfCluster:
    gpu_nodes: CpuMemory
    other_nodes: CpuMemory

    def as_known(self, *, nodes: bool, pods: bool) -> "OfCluster":
        """Returns the value without numbers that depend on unknown nodes or pods."""
        if not nodes:
            return UNKNOWN
        return self if pods else OfCluster(self.gpu_nodes.without_pods(), self.other_nodes.without_pods())


UNKNOWN = OfCluster(*[CpuMemory(Amount(), Amount(), nodes=None, silent=None)] * 2)
NONE = CpuMemory(Amount(0, 0, 0, 0), Amount(0, 0, 0, 0), nodes=0)
NOTHING = OfCluster(NONE, NONE)


def _amount_of_row(row: Mapping[str, Any], what: str, unit: str) -> Amount:
    return Amount(row[f"{what}_allocatable_{unit}"], *(row[f"{what}_{whose}_{unit}"] for whose in WHOSE))
