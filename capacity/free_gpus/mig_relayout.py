"""Nodes that get another MIG layout, so that more of the requested GPU-hours are served. Pure.

The MIG manager changes whole nodes, so that a node with one shape gets another shape on all its GPUs. A greedy search:
each step takes the change with the most GPU-hours served for each GPU, on the node whose pods lose the least. Pods move
to free units of their shape on other nodes; a node stays if they do not fit there.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from capacity.free_gpus.defragmentation import MovablePod
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
    pods: Sequence[MovablePod] = ()
    may_change: bool = True  # False: a pod there must stay

    @property
    def harm(self) -> float:
        """Returns the GPU-hours that its pods lose and wait."""
        return sum(pod.gpu_hours + pod.loading_gpu_hours for pod in self.pods)


@dataclass(frozen=True)
class ChangedNode:
    node: ShapedNode
    profile: str  # the new one; blank: whole GPUs
    gain: float  # requested GPU-hours of the period that it would have served beside the others

    @property
    def config(self) -> str:
        """Returns the name of NVIDIA's default configuration for the MIG manager."""
        return f"all-{self.profile}" if self.profile else "all-disabled"


@dataclass(frozen=True)
class MigRelayout:
    demand: MigDemand
    nodes: Sequence[ChangedNode] = ()
    staying: int = 0  # nodes with several shapes, or with a pod that must stay

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

    @property
    def jobs(self) -> list[str]:
        return sorted({pod.owner for pod in self.pods if pod.is_job})

    @property
    def gpu_hours(self) -> float:
        return sum(pod.gpu_hours for pod in self.pods)

    @property
    def loading_gpu_hours(self) -> float:
        return sum(pod.loading_gpu_hours for pod in self.pods)


def relayout(demand: MigDemand, nodes: Sequence[ShapedNode], *, mixed: int = 0) -> MigRelayout:
    """Returns the nodes to change for the demand on one product. `mixed` nodes have several shapes, and stay."""
    shapes = {line.profile: line for line in demand.profiles}
    offered = Counter({line.profile: line.offered for line in demand.profiles})
    free, found = Counter[str](), list[ChangedNode]()
    for node in nodes:
        free[node.profile] += node.free
    left = sorted(
        (node for node in nodes if node.may_change and node.profile in shapes), key=lambda node: (node.harm, node.name)
    )
    while len(found) < NODES_AT_MOST:
        movable = [node for node in left if free[node.profile] >= node.units]  # its free units, and those of its pods
        cheapest = {(node.profile, node.gpus, node.units): node for node in reversed(movable)}.values()
        changes = [
            ChangedNode(node, name, _gain(node, shapes[node.profile], shapes[name], offered))
            for node in cheapest
            for name in shapes
            if name != node.profile
        ]
        best = max(changes, key=lambda change: (change.gain / change.node.gpus, -change.node.harm), default=None)
        if best is None or best.gain < LEAST_GAIN:
            break
        found.append(best)
        left.remove(best.node)
        free[best.node.profile] -= best.node.units
        offered[best.node.profile] -= best.node.units
        offered[best.profile] += best.node.gpus * shapes[best.profile].per_gpu
    return MigRelayout(demand, found, mixed + sum(not node.may_change for node in nodes))


def _gain(node: ShapedNode, now: ProfileDemand, then: ProfileDemand, offered: Mapping[str, int]) -> float:
    """Returns the requested GPU-hours that the node would have served with the other shape, beside the others."""
    has, gets = offered[now.profile], offered[then.profile]
    lost = sum(now.hours[max(0, has - node.units) : has]) / now.per_gpu
    return sum(then.hours[gets : gets + node.gpus * then.per_gpu]) / then.per_gpu - lost
