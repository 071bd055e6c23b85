"""Nodes that get another MIG layout, so that more of the requested GPU-hours are served. Pure.

The MIG manager changes whole nodes, so that a node with one shape gets another shape on all its GPUs. A greedy search:
each step takes the change with the most GPU-hours served for each GPU, on the node whose pods lose the least. Each pod
moves to one node with the same shape and room for it, as for a defragmentation; a node stays if a pod has none.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from capacity.free_gpus.defragmentation import MovablePod, MovedPods, PackedNode, PodMove, RoomOnNodes
from capacity.free_gpus.mig_demand import MigDemand, ProfileDemand

NODES_AT_MOST = 20  # in one proposal
LEAST_GAIN = 1.0  # GPU-hours of the period; with less, a change is not worth a drain. Ours


@dataclass(frozen=True)
class ShapedNode:
    """A ready node whose GPUs all have one shape: a MIG profile, or whole (blank)."""

    key: int
    name: str
    profile: str
    gpus: int
    units: int  # that it offers
    free: int  # of these
    pods: Sequence[MovablePod] = ()  # with their units as GPUs
    cpu_m: int = 0  # free
    memory_bytes: int = 0  # free
    taints: Any = ()
    may_change: bool = True  # False: a pod there must stay

    @property
    def packed(self) -> PackedNode:
        """Returns the node as a target and source of pods: they move between nodes with its shape and its taints."""
        return PackedNode(
            self.key, self.name, (self.profile, self.units, self.taints), self.units, self.free, self.cpu_m,
            self.memory_bytes, self.pods, self.may_change,
        )  # fmt: skip

    @property
    def harm(self) -> float:
        """Returns the GPU-hours that its pods lose and wait."""
        return sum(pod.gpu_hours + pod.loading_gpu_hours for pod in self.pods)


@dataclass(frozen=True)
class ChangedNode:
    node: ShapedNode
    profile: str  # the new one; blank: whole GPUs
    gain: float  # requested GPU-hours of the period that it would have served beside the others
    moves: Sequence[PodMove] = ()

    @property
    def config(self) -> str:
        """Returns the name of NVIDIA's default configuration for the MIG manager."""
        return f"all-{self.profile}" if self.profile else "all-disabled"


@dataclass(frozen=True)
class MigRelayout(MovedPods):
    demand: MigDemand
    nodes: Sequence[ChangedNode] = ()
    staying: int = 0  # nodes with several shapes, or with a pod that must stay or has no room elsewhere

    @property
    def gain(self) -> float:
        return sum(each.gain for each in self.nodes)

    @property
    def shares(self) -> tuple[float, float, float]:
        """Returns the shares of the requested GPU-hours: of the best layout, the present one, and with these changes.

        0 if nothing was requested.
        """
        served = self.demand.served, self.demand.served_now, self.demand.served_now + self.gain
        best, now, then = (
            min(1.0, hours / self.demand.gpu_hours) if self.demand.gpu_hours else 0.0 for hours in served
        )
        return best, now, then

    @property
    def pods(self) -> list[MovablePod]:
        return [pod for each in self.nodes for pod in each.node.pods]

    @property
    def gpus(self) -> int:
        return sum(each.node.gpus for each in self.nodes)


def relayout(
    demand: MigDemand, nodes: Sequence[ShapedNode], *, mixed: int = 0, budgets: Mapping[int, int] | None = None
) -> MigRelayout:
    """Returns the nodes to change for the demand on one product. `mixed` nodes have several shapes, and stay.

    `budgets` are the evictions that each PodDisruptionBudget of the pods allows now.
    """
    shapes = {line.profile: line for line in demand.profiles}
    offered = Counter({line.profile: line.offered for line in demand.profiles})
    packed = {node.key: node.packed for node in nodes}
    room = RoomOnNodes(list(packed.values()), Counter(budgets or {}))
    found: dict[int, ChangedNode] = {}
    left = {
        node.key: node
        for node in sorted(nodes, key=lambda node: (node.harm, node.name))
        if node.may_change and node.profile in shapes
    }
    full: list[int] = []
    while len(found) < NODES_AT_MOST:
        changes = [
            ChangedNode(node, name, _gain(node, shapes[node.profile], shapes[name], offered))
            for node in _cheapest(left, packed, room, found, full)
            for name in shapes
            if name != node.profile
        ]
        best = max(changes, key=lambda change: (change.gain / change.node.gpus, -change.node.harm), default=None)
        if best is None or best.gain < LEAST_GAIN:
            break
        node = best.node
        moves, _ = room.empty(packed[node.key], 1, found.keys())
        found[node.key] = replace(best, moves=[PodMove(pod, target.name) for pod, target in moves or ()])
        for key in (node.key, *(target.key for _, target in moves or ())):  # a pod moves once
            left.pop(key, None)
        offered[node.profile] -= node.units
        offered[best.profile] += node.gpus * shapes[best.profile].per_gpu
    return MigRelayout(demand, list(found.values()), mixed + sum(not node.may_change for node in nodes) + len(full))


def _cheapest(
    left: dict[int, ShapedNode],
    packed: Mapping[int, PackedNode],
    room: RoomOnNodes,
    changed: Collection[int],
    full: list[int],
) -> list[ShapedNode]:
    """Returns the first node of each shape and size whose pods have room. Moves nodes without room to `full`."""
    found: dict[tuple[str, int, int], ShapedNode] = {}
    for key, node in list(left.items()):
        if (node.profile, node.gpus, node.units) in found:
            continue
        moves, _ = room.empty(packed[key], 1, changed)
        if moves is None:  # room and budgets only shrink
            del left[key]
            full.append(key)
            continue
        room.undo(moves)
        found[node.profile, node.gpus, node.units] = node
    return list(found.values())


def _gain(node: ShapedNode, now: ProfileDemand, then: ProfileDemand, offered: Mapping[str, int]) -> float:
    """Returns the requested GPU-hours that the node would have served with the other shape, beside the others."""
    has, gets = offered[now.profile], offered[then.profile]
    lost = sum(now.hours[max(0, has - node.units) : has]) / now.per_gpu
    return sum(then.hours[gets : gets + node.gpus * then.per_gpu]) / then.per_gpu - lost
