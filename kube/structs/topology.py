"""NodeResourceTopology: the zones of a node with their resources, and the topology policy of its kubelet.

kubernetes-sigs/noderesourcetopology-api, API.md. The topology updater of node feature discovery writes one object for
each node, with the attribute topologyManagerPolicy (pkg/nfd-topology-updater); v1alpha1 has topologyPolicies instead.
"""

from kube.structs.meta import Seen, Struct


class ZoneAttribute(Struct, frozen=True):
    name: str = ""
    value: str | None = ""


class ZoneResource(Struct, frozen=True):
    name: str = ""
    allocatable: str | int | float | None = None
    available: str | int | float | None = None


class Zone(Struct, frozen=True):
    name: str = ""
    type: str = ""  # Node: a NUMA node
    resources: list[ZoneResource] | None = None


class NodeTopologySeen(Seen, frozen=True):
    zones: list[Zone] | None = None
    attributes: list[ZoneAttribute] | None = None
    topology_policies: list[str] | None = None  # v1alpha1
