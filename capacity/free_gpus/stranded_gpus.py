"""Free GPUs of nodes: usable now, or stranded by one cause each. Pure.

Causes are tried in their order, so that the parts add up to the free GPUs.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

REQUESTS = (1, 2, 4, 8)  # GPUs of one pod


class StrandedBy(StrEnum):
    NOT_READY = "not_ready"
    CORDON = "cordon"
    TAINT = "taint"  # that no GPU pod tolerates
    CPU = "cpu"  # too little for the usual GPU pod
    MEMORY = "memory"
    PROFILE = "mig_profile"  # slices that no pod requests
    LEFTOVER = "leftover"  # fewer than the usual pod requests


@dataclass(frozen=True)
class UsualPod:
    """The request of the GPU pods around: those that run, and those that wait."""

    gpus: int = 1  # whole GPUs of the pods that have most of all GPUs
    cpu_m: int = 0  # for each GPU, the median
    memory_bytes: int = 0
    profiles: frozenset[str] = frozenset()  # resources of slices that pods request


@dataclass(frozen=True)
class NodeWithRoom:
    gpus: int = 0  # free whole GPUs
    slices: Mapping[str, float] = field(default_factory=dict)  # free slices by resource, as parts of a GPU
    is_ready: bool = True
    is_cordoned: bool = False
    is_tainted: bool = False  # with a taint that no GPU pod tolerates
    cpu_m: int | None = None  # free; None: unknown
    memory_bytes: int | None = None
    domains: Mapping[str, str] = field(default_factory=dict)  # name of its domain by kind of domain; blank: unknown


@dataclass(frozen=True)
class DomainRoom:
    """Room for gangs: pods of one size that must all start in one NVLink domain or rack."""

    kind: str
    domains: int  # with free GPUs on nodes that accept pods
    unknown: int  # such nodes without a known domain; they are in no domain
    largest: Mapping[int, int]  # GPUs of the largest gang by GPUs of each of its pods
    best: str  # the domain with the largest gang of whole nodes, else of smaller pods


@dataclass(frozen=True)
class FreeGpus:
    usual: UsualPod
    free: float
    usable: float  # by the usual pod, and by pods that request the free slices
    stranded: Mapping[StrandedBy, float]
    nodes: Mapping[StrandedBy, int]  # with GPUs that are stranded by it
    pods: Mapping[int, int]  # by number of whole GPUs: how many such pods fit now, each size alone
    by_domain: Sequence[DomainRoom] = ()
    usable_slices: float = 0.0  # of the usable, free MIG slices as parts of a GPU

    @property
    def usable_whole(self) -> float:
        return self.usable - self.usable_slices

    @property
    def parts(self) -> list[tuple[StrandedBy, float, int]]:
        return [(cause, self.stranded[cause], self.nodes[cause]) for cause in StrandedBy if self.stranded.get(cause)]


def free_gpus(nodes: Iterable[NodeWithRoom], usual: UsualPod) -> FreeGpus:
    free = usable = usable_slices = 0.0
    stranded: dict[StrandedBy, float] = defaultdict(float)
    held: Counter[StrandedBy] = Counter()
    pods: Counter[int] = Counter(dict.fromkeys(REQUESTS, 0))
    room: dict[str, dict[str, Counter[int]]] = defaultdict(lambda: defaultdict(Counter))  # by kind and domain
    nodes_of: dict[str, Counter[str]] = defaultdict(Counter)
    for node in nodes:
        free += node.gpus + sum(node.slices.values())
        if closed := _closed_by(node):
            causes = {closed: node.gpus + sum(node.slices.values())}
        else:
            causes, open_gpus = _stranded_on_node(node, usual)
            for size in REQUESTS:
                pods[size] += open_gpus // size
            for kind, domain in node.domains.items() if open_gpus else ():
                nodes_of[kind][domain] += 1
                room[kind][domain].update({size: open_gpus // size * size for size in REQUESTS})
            usable += open_gpus - causes.get(StrandedBy.LEFTOVER, 0)
            usable_slices += sum(part for name, part in node.slices.items() if name in usual.profiles)
        for cause, gpus in causes.items():
            if gpus:
                stranded[cause] += gpus
                held[cause] += 1
    by_domain = [_domain_room(kind, found, nodes_of[kind][""]) for kind, found in sorted(room.items())]
    in_domains = [each for each in by_domain if each.domains]
    return FreeGpus(usual, free, usable + usable_slices, stranded, held, pods, in_domains, usable_slices)


def _domain_room(kind: str, room: Mapping[str, Counter[int]], unknown: int) -> DomainRoom:
    known = {domain: gpus for domain, gpus in room.items() if domain}
    largest = {size: max((gpus[size] for gpus in known.values()), default=0) for size in REQUESTS}
    best = max(sorted(known), key=lambda name: tuple(known[name][size] for size in reversed(REQUESTS)), default="")
    return DomainRoom(kind, len(known), unknown, largest, best)


def _closed_by(node: NodeWithRoom) -> StrandedBy | None:
    closed = (
        (StrandedBy.NOT_READY, not node.is_ready),
        (StrandedBy.CORDON, node.is_cordoned),
        (StrandedBy.TAINT, node.is_tainted),
    )
    return next((cause for cause, holds in closed if holds), None)


def _stranded_on_node(node: NodeWithRoom, usual: UsualPod) -> tuple[dict[StrandedBy, float], int]:
    """Returns what is stranded on a node that accepts pods, and its GPUs with enough CPU and memory."""
    by_cpu = _gpus_served(node.cpu_m, usual.cpu_m, node.gpus)
    by_memory = _gpus_served(node.memory_bytes, usual.memory_bytes, node.gpus)
    open_gpus = min(by_cpu, by_memory)
    tighter = StrandedBy.CPU if by_cpu <= by_memory else StrandedBy.MEMORY
    return {
        tighter: node.gpus - open_gpus,
        StrandedBy.LEFTOVER: open_gpus % usual.gpus,
        StrandedBy.PROFILE: sum(part for name, part in node.slices.items() if name not in usual.profiles),
    }, open_gpus


def _gpus_served(free: int | None, for_each: int, gpus: int) -> int:
    """Returns for how many of the GPUs an amount suffices."""
    return gpus if free is None or not for_each else min(gpus, max(0, free) // for_each)
