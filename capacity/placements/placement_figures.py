"""Figures of packed and spread running pods. Pure.

Packing compares GPUs alone: CPU, memory, taints and affinities may prevent a move.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil

SPARE = 0.05  # of the used nodes, which may be partly used while pods come and go. Ours
HALF = 0.5  # of a workload's pods, which one failure may stop. Ours
UNEVEN = 1.25  # times the even share: fewer pods more than that in one domain are no concentration. Ours
SHOWN = 20  # concentrated workloads


@dataclass(frozen=True)
class UsedNode:
    """A node with pods that have whole GPUs. Pods move only between nodes of one kind."""

    kind: str
    gpus: int
    pods: Mapping[int, int]  # number of pods by their whole GPUs
    others: int = 0  # whole GPUs of pods that stay


@dataclass(frozen=True)
class PackFigures:
    used: int  # nodes with pods that have whole GPUs
    needed: int  # of these, if the pods were packed; nodes with other pods stay in use
    free: int  # whole GPUs on the used nodes that no pod has

    @property
    def freed(self) -> int:
        """Returns the nodes that packing would free."""
        return self.used - self.needed

    @property
    def is_broken(self) -> bool:
        return self.freed >= max(1, SPARE * self.used)


@dataclass(frozen=True)
class ConcentratedWorkload:
    """A workload with more than half of its pods, and a quarter more than an even share, in one domain."""

    name: str
    pods: int
    domain: str
    pods_in_domain: int


@dataclass(frozen=True)
class SpreadFigures:
    domains: int  # values of the label on the pool's GPU nodes
    unlabelled: int  # GPU nodes without the label
    workloads: int = 0  # with at least two running pods on labelled nodes
    concentrated: int = 0
    worst: tuple[ConcentratedWorkload, ...] = ()  # those with the most pods, at most `SHOWN`


def pack_figures(nodes: Iterable[UsedNode]) -> PackFigures:
    """Compares with a best-fit packing of the same pods, the largest first, on nodes of the same kind.

    A node on which other pods stay remains in use, so its room is filled first.
    """
    kinds: dict[tuple[str, int], list[UsedNode]] = defaultdict(list)
    for node in nodes:
        kinds[node.kind, node.gpus].append(node)
    needed = sum(min(len(some), _packed(some)) for some in kinds.values())
    every = [node for some in kinds.values() for node in some]
    taken = (node.others + sum(size * number for size, number in node.pods.items()) for node in every)
    free = sum(max(0, node.gpus - gpus) for node, gpus in zip(every, taken, strict=True))
    return PackFigures(len(every), needed, free)


def _packed(nodes: Sequence[UsedNode]) -> int:
    """Returns the nodes that stay in use: those with other pods, and the further ones that the pods need."""
    pods: Counter[int] = Counter()
    for node in nodes:
        pods.update(node.pods)
    room = Counter(max(0, node.gpus - node.others) for node in nodes if node.others)  # opened nodes by free GPUs
    opened = room.total()
    for size in sorted(pods, reverse=True):
        for _ in range(pods[size]):
            left = min((free for free in room if free >= size and room[free]), default=None)
            if left is None:
                left = max(nodes[0].gpus, size)
                opened += 1
            else:
                room[left] -= 1
            room[left - size] += 1
    return opened


def spread_figures(workloads: Mapping[str, Mapping[str, int]], *, domains: int, unlabelled: int) -> SpreadFigures:
    """Returns the figures from the number of running pods by workload and failure domain."""
    several = {name: places for name, places in workloads.items() if sum(places.values()) > 1}
    found = [
        ConcentratedWorkload(name, sum(places.values()), domain, places[domain])
        for name, places in several.items()
        if _is_concentrated(places, domain := max(places, key=lambda name: (places[name], name)), domains)
    ]
    found.sort(key=lambda workload: (-workload.pods_in_domain, workload.name))
    return SpreadFigures(domains, unlabelled, len(several), len(found), tuple(found[:SHOWN]))


def _is_concentrated(places: Mapping[str, int], fullest: str, domains: int) -> bool:
    pods = sum(places.values())
    return places[fullest] > max(HALF * pods, UNEVEN * ceil(pods / domains))
