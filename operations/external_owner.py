"""The other controller that works on a node now, from its row or from the node itself."""

from fleet.models import Node
from gpu.external_owners import ExternalOwner, NodeMarks, announced_work, external_owner
from kube.structs import NodeSeen


def external_owner_of(node: Node) -> ExternalOwner | None:
    conditions = {each["type"]: each["reason"] for each in node.lifecycle or ()}
    return external_owner(NodeMarks(node.labels, node.annotations, {taint["key"] for taint in node.taints}, conditions))


def announced_work_of(node: Node) -> list[str]:
    """Returns the work that a cloud announces for the node."""
    return list(announced_work(node.labels, node.reported_conditions))


def external_owner_on(observed: NodeSeen) -> ExternalOwner | None:
    conditions = {each.type: each.reason or "" for each in observed.status.conditions or () if each.status == "True"}
    taints = {taint.key for taint in observed.spec.taints or ()}
    return external_owner(NodeMarks(observed.labels, observed.annotations, taints, conditions))
