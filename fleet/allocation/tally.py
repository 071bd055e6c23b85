"""Counts over nodes for pages and REST. None means unknown: a cluster that was never listed does not have 0 nodes."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Any

from django.db.models import Exists, OuterRef

from fleet.allocation.amounts import AMOUNT_COLUMNS, PODS_READ, GpuAmount
from fleet.allocation.cpu_memory import NOTHING as NO_CPU_MEMORY
from fleet.allocation.cpu_memory import UNKNOWN as UNKNOWN_CPU_MEMORY
from fleet.allocation.cpu_memory import CpuMemory, OfCluster
from fleet.allocation.physical import Physical
from fleet.models import NodeSums
from fleet.states.node import FAULTS, NodeState
from gpu.resources import Uses

NAMES = NodeSums.added_up()
COUNTS = ("ready", "not_ready", "readiness_unknown", "unschedulable", "held")
NO_GPUS = GpuAmount()
NO_DATA = GpuAmount(expected=None, allocatable=None, allocated=None, free=None, away=None)
AMOUNTS = ("expected", "allocatable", "allocated", "free", "away")


@dataclass(frozen=True)
class Alike:
    """Nodes of one cluster that share one counter row."""

    cluster: int
    pools: frozenset[int]  # keys of all their pools
    is_gpu_node: bool
    state: NodeState
    driver_version: str
    is_driver_reported: bool
    gpu_product: str
    numbers: tuple[int, ...]  # in the order of `NAMES`
    knows_pods: bool  # whether the cluster's pods were ever read

    @property
    def reported_driver(self) -> str:
        """Returns the driver version. Blank: no source reports it now."""
        return self.driver_version if self.is_driver_reported else ""

    @property
    def nodes(self) -> int:
        return self.numbers[NAMES.index("nodes")]

    @property
    def held(self) -> int:
        return self.numbers[NAMES.index("held")]


def read_alike(user: Any = None, *, clusters: Iterable[int] | None = None) -> list[Alike]:
    """Returns all nodes that the user may see, of these clusters or all. User None: all nodes. One query."""
    rows = NodeSums.objects.order_by("pk")
    if user is not None:
        rows = rows.visible_to(user)
    if clusters is not None:
        rows = rows.filter(cluster__in=clusters)
    rows = rows.annotate(knows_pods=Exists(PODS_READ.filter(cluster=OuterRef("cluster"))))
    return [_group_key_of_node(row) for row in rows.values_list(*NodeSums.alike, "knows_pods", *NAMES)]


def _group_key_of_node(row: tuple[Any, ...]) -> Alike:
    cluster, pools, is_gpu_node, state, driver_version, is_driver_reported, product, knows_pods, *numbers = row
    keys = frozenset(int(key) for key in pools.split(",") if key)
    said = driver_version, is_driver_reported, product
    return Alike(cluster, keys, is_gpu_node, NodeState(state), *said, tuple(numbers), knows_pods)


@dataclass(frozen=True)
class VersionCount:
    version: str  # blank: unknown
    nodes: int


@dataclass(frozen=True)
class Tally:
    """Counts of GPU nodes; `nodes` and `cpu_memory` count all nodes. Nodes that were never counted are in no number.

    `physical` counts boards; `gpus` counts GPUs with one user, without slices and shares.
    """

    nodes: int | None = 0
    gpu_nodes: int | None = 0
    ready: int | None = 0  # as reported by the kubelet, regardless of other faults
    not_ready: int | None = 0
    readiness_unknown: int | None = 0  # the kubelet stopped reporting
    unschedulable: int | None = 0
    held: int | None = 0
    by_state: Mapping[NodeState, int] = field(default_factory=Counter)
    physical: Physical | None = field(default_factory=Physical)
    gpus: GpuAmount = NO_GPUS
    slices: GpuAmount = NO_GPUS  # MIG slices and partitions
    shares: GpuAmount = NO_GPUS  # of any kind of sharing
    driver_versions: tuple[VersionCount, ...] = ()  # as reported now; the most common first
    products: frozenset[str] = frozenset()
    clusters: frozenset[int] = frozenset()
    cpu_memory: OfCluster = NO_CPU_MEMORY

    def as_known(self, *, nodes: bool, pods: bool) -> "Tally":
        """Returns the tally without numbers that depend on unknown nodes or pods."""
        if not nodes:
            return UNKNOWN
        if pods:
            return self
        amounts = {kind: getattr(self, kind).without_pods() for kind in AMOUNT_COLUMNS}
        return replace(self, cpu_memory=self.cpu_memory.as_known(nodes=True, pods=False), **amounts)

    @property
    def physical_gpus(self) -> int | None:
        """Returns the physical GPUs. None: unknown for every node."""
        return None if self.physical is None else self.physical.known

    @property
    def physical_gpus_by_use(self) -> Uses | None:
        return None if self.physical is None else self.physical.uses

    @property
    def uncounted_nodes(self) -> int | None:
        return None if self.physical is None else self.physical.uncounted

    @property
    def amounts(self) -> list[tuple[str, GpuAmount]]:
        found = (("whole GPU" if self.has_parts else "GPU", self.gpus), ("slice", self.slices), ("share", self.shares))
        return [(word, amount) for word, amount in found if amount.expected]

    @property
    def has_parts(self) -> bool:
        """Tells whether some GPUs are partitioned or shared."""
        return bool(self.slices.expected or self.shares.expected)

    @property
    def well(self) -> int:
        """Returns the nodes that are ready, without a fault or a change."""
        return self._in(NodeState.READY, NodeState.HELD)

    @property
    def faulty(self) -> int:
        return self._in(*FAULTS)

    @property
    def changing(self) -> int:
        return self._in(NodeState.UPGRADING)

    @property
    def reconfiguring(self) -> int:
        return self._in(NodeState.RECONFIGURING)

    @property
    def cordoned(self) -> int:
        return self._in(NodeState.CORDONED)

    @property
    def disagrees(self) -> bool:
        """Tells whether its nodes run different drivers."""
        return len([each for each in self.driver_versions if each.version]) > 1

    def _in(self, *states: NodeState) -> int:
        return sum(self.by_state.get(state, 0) for state in states)


UNKNOWN = Tally(
    **dict.fromkeys(("nodes", "gpu_nodes", *COUNTS)),  # type: ignore[arg-type]
    physical=None,
    **dict.fromkeys(AMOUNT_COLUMNS, NO_DATA),  # type: ignore[arg-type]
    cpu_memory=UNKNOWN_CPU_MEMORY,
)


def tally(alike: Sequence[Alike]) -> Tally:
    """Adds up nodes. Makes no query."""
    gpu_nodes = [each for each in alike if each.is_gpu_node]
    others = [each for each in alike if not each.is_gpu_node]
    sums = _sums(gpu_nodes)
    read = _sums([each for each in gpu_nodes if each.knows_pods])
    by_state: Counter[NodeState] = Counter()
    for each in gpu_nodes:
        by_state[each.state] += each.nodes
    counts: dict[str, Any] = {name: sums[name] for name in COUNTS}
    amounts: dict[str, Any] = {kind: _gpu_amount(kind, sums, read) for kind in AMOUNT_COLUMNS}
    return Tally(
        nodes=sum(each.nodes for each in alike),
        gpu_nodes=sums["nodes"],
        **counts,
        by_state=by_state,
        physical=Physical.of(sums),
        **amounts,
        driver_versions=_versions(gpu_nodes),
        products=frozenset(each.gpu_product for each in gpu_nodes) - {""},
        clusters=frozenset(each.cluster for each in gpu_nodes),
        cpu_memory=OfCluster(_cpu_memory(sums), _cpu_memory(_sums(others))),
    )


def _sums(alike: Iterable[Alike]) -> dict[str, int]:
    columns = zip(*map(attrgetter("numbers"), alike), strict=True)
    return dict.fromkeys(NAMES, 0) | dict(zip(NAMES, map(sum, columns), strict=False))


def _gpu_amount(kind: str, sums: Mapping[str, int], read: Mapping[str, int]) -> GpuAmount:
    """Returns one amount. `read` covers only nodes whose pods were read."""
    numbers: dict[str, int | None] = {name: sums[f"{kind}_{name}"] for name in AMOUNTS}
    unread = sums[f"{kind}_allocatable"] - read[f"{kind}_allocatable"]
    numbers |= {name: read[f"{kind}_{name}"] for name in ("allocated", "free")}
    if (unread and unread == sums[f"{kind}_allocatable"]) or (sums["nodes"] and not read["nodes"]):
        numbers |= {"allocated": None, "free": None}
    if kind == "gpus" and sums["nodes"]:  # unknown, not zero, if no node reported any
        numbers |= {} if sums["gpus_named"] else {"expected": None, "away": None}
        numbers |= {} if sums["gpus_named_now"] else {"allocatable": None}
    return GpuAmount(**numbers, unread=unread)


def _versions(alike: Iterable[Alike]) -> tuple[VersionCount, ...]:
    found: Counter[str] = Counter()
    for each in alike:
        found[each.reported_driver] += each.nodes
    return tuple(VersionCount(*pair) for pair in sorted(found.items(), key=lambda pair: (-pair[1], pair[0])))


def _cpu_memory(sums: Mapping[str, int]) -> CpuMemory:
    numbers: dict[str, int | None] = dict(sums)
    for named, column in (("cpu_named", "cpu_allocatable_m"), ("memory_named", "memory_allocatable_bytes")):
        if sums["nodes"] and not sums[named]:
            numbers[column] = None
    return CpuMemory.of(numbers, nodes=sums["nodes"], silent=sums["silent"])
