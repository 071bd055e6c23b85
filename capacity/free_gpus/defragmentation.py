"""Nodes whose pods could move elsewhere, so that more pods of one size fit. Pure.

Whole nodes are emptied, since a drain does that. A greedy search, not the best answer: it tries nodes with the fewest
GPUs to move first, places their pods by best fit on equal nodes, and keeps a move only if more pods fit afterwards. A
node that receives pods is not emptied later, so every pod moves at most once.
"""

from abc import ABC, abstractmethod
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

SIZES = (2, 4, 8)  # GPUs of one pod
NODES_AT_MOST = 20  # in one proposal
TRIED_AT_MOST = 1000  # nodes that are tried as sources, the cheapest first
TARGETS_AT_MOST = 32  # nodes with equal free GPUs that are tried for one pod


@dataclass(frozen=True)
class MovablePod:
    key: int
    name: str  # namespace/name
    owner: str  # kind, namespace and name of its workload
    gpus: int  # whole ones; among nodes that are cut, slices of their profile
    cpu_m: int
    memory_bytes: int
    gpu_hours: float  # work of a job that starts again; 0 of a service
    loading_gpu_hours: float = 0.0  # until it is Ready on another node, as its workload usually needs
    is_job: bool = False
    has_empty_dir: bool = False
    budgets: tuple[int, ...] = ()  # keys of its PodDisruptionBudgets


@dataclass(frozen=True)
class PackedNode:
    """A ready node whose GPUs are all whole, or all cut into one profile."""

    key: int
    name: str
    kind: Any  # pods move between nodes of one kind
    gpus: int  # that it offers; slices if they are cut
    free: int
    cpu_m: int  # free
    memory_bytes: int  # free
    pods: Sequence[MovablePod] = ()
    is_source: bool = True  # False: a pod there must stay


@dataclass(frozen=True)
class PodMove:
    pod: MovablePod
    target: str  # name of a node with room for it


class MovedPods(ABC):
    """The costs of the pods that a proposal moves."""

    @property
    @abstractmethod
    def pods(self) -> list[MovablePod]: ...

    @property
    def gpu_hours(self) -> float:
        return sum(pod.gpu_hours for pod in self.pods)

    @property
    def loading_gpu_hours(self) -> float:
        return sum(pod.loading_gpu_hours for pod in self.pods)

    @property
    def jobs(self) -> list[str]:
        return sorted({pod.owner for pod in self.pods if pod.is_job})

    @property
    def with_empty_dir(self) -> int:
        return sum(pod.has_empty_dir for pod in self.pods)


@dataclass(frozen=True)
class EmptiedNode(MovedPods):
    key: int
    name: str
    moves: Sequence[PodMove]
    gain: int = 0  # pods of the size that fit once this node, and those before it, are empty

    @property
    def pods(self) -> list[MovablePod]:
        return [move.pod for move in self.moves]


@dataclass(frozen=True)
class Proposal(MovedPods):
    size: int
    fits_now: int  # pods of this size
    fits_after: int
    nodes: Sequence[EmptiedNode] = ()

    @property
    def moves(self) -> list[PodMove]:
        return [move for node in self.nodes for move in node.moves]

    @property
    def pods(self) -> list[MovablePod]:
        return [move.pod for move in self.moves]

    @property
    def gpus(self) -> int:
        return sum(pod.gpus for pod in self.pods)

    @property
    def gpus_gained(self) -> int:
        """Returns the GPUs that become usable for pods of this size."""
        return self.size * (self.fits_after - self.fits_now)

    @property
    def namespaces(self) -> list[str]:
        return sorted({pod.name.partition("/")[0] for pod in self.pods})


PodTarget = tuple[MovablePod, PackedNode]


@dataclass
class RoomOnNodes:
    """The free amounts of the nodes, and the evictions of the budgets, while pods are moved in thought."""

    nodes: Sequence[PackedNode]
    budgets: Counter[int] = field(default_factory=Counter)  # evictions that each allows
    free: dict[int, list[int]] = field(default_factory=dict)  # by node: GPUs, millicores, bytes
    by_free: dict[tuple[Any, int], dict[int, None]] = field(default_factory=lambda: defaultdict(dict))
    by_key: dict[int, PackedNode] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for node in self.nodes:
            self.by_key[node.key] = node
            self.free[node.key] = [node.free, node.cpu_m, node.memory_bytes]
            self.by_free[node.kind, node.free][node.key] = None

    def empty(
        self, node: PackedNode, size: int, emptied: Collection[int] = frozenset()
    ) -> tuple[list[PodTarget] | None, int]:
        """Moves the pods of a node to others. Returns the moves, and how many more pods of the size fit.

        None if a pod fits nowhere, or may not be evicted: nothing moves. `emptied` nodes receive none.
        """
        moves: list[PodTarget] = []
        gain = node.gpus // size - self.free[node.key][0] // size
        for pod in sorted(node.pods, key=lambda pod: (-pod.gpus, pod.key)):
            target = self._target_of(pod, node, size, emptied) if pod.gpus else None
            is_allowed = all(self.budgets[budget] > 0 for budget in pod.budgets)
            if target is None or not is_allowed:
                self.undo(moves)
                return None, 0
            before = self.free[target.key][0]
            self._take(target, pod)
            self.budgets.subtract(pod.budgets)
            gain -= before // size - (before - pod.gpus) // size
            moves.append((pod, target))
        return moves, gain

    def undo(self, moves: Iterable[PodTarget]) -> None:
        for pod, target in moves:
            self._take(target, pod, -1)
            self.budgets.update(pod.budgets)

    def _take(self, node: PackedNode, pod: MovablePod, sign: int = 1) -> None:
        free = self.free[node.key]
        if pod.gpus:
            self.by_free[node.kind, free[0]].pop(node.key, None)
            self.by_free[node.kind, free[0] - sign * pod.gpus][node.key] = None
        free[0] -= sign * pod.gpus
        free[1] -= sign * pod.cpu_m
        free[2] -= sign * pod.memory_bytes

    def _target_of(self, pod: MovablePod, source: PackedNode, size: int, emptied: Collection[int]) -> PackedNode | None:
        """Returns the node where the pod costs the fewest pods of the size, then the one with the least room."""
        levels = range(pod.gpus, source.gpus + 1)
        for level in sorted(levels, key=lambda free: (free // size - (free - pod.gpus) // size, free)):
            for key in islice(self.by_free[source.kind, level], TARGETS_AT_MOST):
                _, cpu_m, memory_bytes = self.free[key]
                if key != source.key and key not in emptied and cpu_m >= pod.cpu_m and memory_bytes >= pod.memory_bytes:
                    return self.by_key[key]
        return None


def propose(nodes: Sequence[PackedNode], size: int, budgets: Mapping[int, int]) -> Proposal:
    """Returns the nodes to empty for more pods of a size. `budgets` are the evictions that each budget allows now."""
    room = RoomOnNodes(nodes, Counter(budgets))
    fits_now = sum(node.free // size for node in nodes)
    emptied: dict[int, EmptiedNode] = {}
    received = set[int]()
    sources = [node for node in nodes if node.is_source and node.pods and node.gpus // size > node.free // size]
    sources.sort(key=lambda node: (node.gpus - node.free, sum(pod.gpu_hours for pod in node.pods), node.name))
    fits = fits_now
    for node in sources[:TRIED_AT_MOST]:
        if len(emptied) >= NODES_AT_MOST:
            break
        if node.key in received:
            continue
        moves, gain = room.empty(node, size, emptied.keys())
        if moves is not None and gain > 0:
            fits += gain
            received |= {target.key for _, target in moves}
            emptied[node.key] = EmptiedNode(
                node.key, node.name, [PodMove(pod, target.name) for pod, target in moves], gain
            )
        elif moves is not None:
            room.undo(moves)
    return Proposal(size, fits_now, fits, list(emptied.values()))
