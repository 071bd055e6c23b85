"""The NUMA nodes of running pods with several GPUs. Pure.

A NodeResourceTopology has the GPUs in use of each NUMA node, and names no pod. So a pod spans NUMA nodes only if it has
more GPUs than are in use on any of them, and could have fitted on one. That holds if every GPU is counted: the zones
have all GPUs of the node, and in use are just those of its pods. The kubelet refuses a pod that it cannot align under
the policies restricted and single-numa-node, and best-effort admits it: kubernetes.io, Control Topology Management
Policies on a node. Devices of a claim name their NUMA node in the ResourceSlice.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

NAMED_AT_MOST = 20  # pods
ALIGNED = frozenset({"restricted", "single-numa-node"})  # policies that refuse a pod without a common NUMA node


@dataclass(frozen=True)
class GpuPod:
    """A running pod with at least two GPUs."""

    name: str  # namespace/name
    resources: Mapping[str, int]
    numa_nodes: frozenset[int] = frozenset()  # of the devices of its claims; empty: unknown, or one cannot hold them
    is_counted: bool = True  # False: the topology of its node may be older


@dataclass(frozen=True)
class NumaNode:
    """The GPUs of one NUMA node by resource."""

    allocatable: Mapping[str, int]
    available: Mapping[str, int]

    def used(self, resource: str) -> int:
        return max(0, self.allocatable.get(resource, 0) - self.available.get(resource, 0))


@dataclass(frozen=True)
class NodeZones:
    name: str
    policy: str  # of the kubelet; blank: unknown
    zones: Sequence[NumaNode]
    capacity: Mapping[str, int]  # of the node
    requested: Mapping[str, int]  # by all its pods

    def counts_all(self, resource: str) -> bool:
        """Tells whether all GPUs are counted. An unhealthy one is in no zone, and a stale topology misses pods."""
        return sum(zone.allocatable.get(resource, 0) for zone in self.zones) == self.capacity.get(resource, 0) and sum(
            zone.used(resource) for zone in self.zones
        ) == self.requested.get(resource, 0)

    def could_fit(self, pod: GpuPod) -> bool:
        """Tells whether one of several NUMA nodes has as many GPUs as the pod."""
        with_gpus = [zone for zone in self.zones if any(zone.allocatable.values())]
        return len(with_gpus) > 1 and any(
            all(zone.allocatable.get(name, 0) >= number for name, number in pod.resources.items()) for zone in with_gpus
        )

    def is_spanned_by(self, pod: GpuPod) -> bool:
        """Tells whether the pod has GPUs of several NUMA nodes, although it could have fitted on one."""
        is_counted = pod.is_counted and all(map(self.counts_all, pod.resources))
        return (
            is_counted
            and self.could_fit(pod)
            and any(max(zone.used(name) for zone in self.zones) < number for name, number in pod.resources.items())
        )


@dataclass(frozen=True)
class SpanningPod:
    name: str
    node: str
    is_of_claim: bool  # its devices name their NUMA nodes; else a NodeResourceTopology shows it


@dataclass(frozen=True)
class NumaFigures:
    nodes: int  # whose NUMA nodes are known
    policies: Mapping[str, int]  # nodes by topology policy of the kubelet; blank: unknown
    unaligned_nodes: int  # with pods of several GPUs, and a policy that does not guarantee their alignment
    unaligned_pods: int  # of these nodes: pods with several GPUs that would fit on one NUMA node
    spanning: Sequence[SpanningPod]

    @property
    def named(self) -> Sequence[SpanningPod]:
        return self.spanning[:NAMED_AT_MOST]

    @property
    def unnamed(self) -> int:
        return len(self.spanning) - len(self.named)


def numa_figures(nodes: Iterable[NodeZones], pods: Mapping[str, Collection[GpuPod]]) -> NumaFigures:
    """Compares the pods by node name. Nodes without known zones count only for devices of claims."""
    known = {node.name: node for node in nodes}
    loose = {
        name: sum(map(node.could_fit, pods.get(name, ())))
        for name, node in known.items()
        if node.policy and node.policy not in ALIGNED
    }
    spanning = [
        SpanningPod(pod.name, name, is_of_claim=len(pod.numa_nodes) > 1)
        for name in sorted(pods)
        for pod in pods[name]
        if len(pod.numa_nodes) > 1 or (name in known and known[name].is_spanned_by(pod))
    ]
    return NumaFigures(
        len(known),
        dict(sorted(Counter(node.policy for node in known.values()).items())),
        sum(map(bool, loose.values())),
        sum(loose.values()),
        spanning,
    )
