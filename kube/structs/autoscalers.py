"""Objects of Karpenter: NodePools, and the NodeClaims by which it asks a cloud for nodes.

kubernetes-sigs/karpenter@v1.14.1, pkg/apis/v1/{nodepool,nodeclaim}{,_status}.go. The cluster autoscaler has only a
ConfigMap.
"""

from kube.structs.meta import Condition, ResourceList, Seen, Struct


class NodePoolSpec(Struct, frozen=True):
    limits: ResourceList | None = None


class NodePoolStatus(Struct, frozen=True):
    resources: ResourceList | None = None  # of all its nodes
    conditions: list[Condition] | None = None


class NodePoolSeen(Seen, frozen=True):
    spec: NodePoolSpec | None = None
    status: NodePoolStatus | None = None


class NodeClaimStatus(Struct, frozen=True):
    node_name: str | None = ""
    conditions: list[Condition] | None = None


class NodeClaimSeen(Seen, frozen=True):
    status: NodeClaimStatus | None = None
