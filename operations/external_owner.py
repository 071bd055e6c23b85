"""The other controller that works on a node now: from its row, the node itself, or the controller's objects."""

from collections.abc import Collection, Iterator, Mapping, Sequence

from fleet.models import Node
from gpu.external_owners import ExternalOwner, NodeMarks, announced_work, external_owner
from gpu.labels import CAPI_MACHINE
from kube.structs import NodeSeen
from operations.models import ExternalWork
from wording.lists import names


def external_owners(nodes: Collection[Node]) -> dict[str, ExternalOwner]:
    """Returns the other controllers that work on nodes, by node UID. One query."""
    rows = ExternalWork.objects.filter(cluster__in={node.cluster_id for node in nodes})
    work = {(row.cluster_id, name): owner for row in rows for name, owner in row.by_node.items()}
    found: dict[str, ExternalOwner] = {}
    for node in nodes:
        if by_mark := _by_marks(node):
            found[node.uid] = by_mark
        elif by_object := work.get((node.cluster_id, node.name)):
            found[node.uid] = ExternalOwner(*by_object)
    return found


def external_owner_of(node: Node) -> ExternalOwner | None:
    """Returns the other controller that works on the node. One query."""
    return external_owners([node]).get(node.uid)


def _by_marks(node: Node) -> ExternalOwner | None:
    conditions = {each["type"]: each["reason"] for each in node.lifecycle or ()}
    return external_owner(NodeMarks(node.labels, node.annotations, {taint["key"] for taint in node.taints}, conditions))


def not_looked_at(nodes: Sequence[Node]) -> Iterator[str]:
    """Yields whose work on the nodes of one cluster is unknown, each with the reason. One query."""
    if not nodes:
        return
    row = ExternalWork.objects.filter(cluster=nodes[0].cluster_id).first()
    if row is None or row.looked_at is None:
        yield "The work of remediators and machine controllers was not looked at yet."
        return
    yield from not_looked_sentences(row.not_looked)
    machines = [node.name for node in nodes if CAPI_MACHINE in node.annotations] if "Machine" in row.absent else []
    if machines:
        yield f"The Machines of {names(machines)} were not looked at: they are in another cluster."


def not_looked_sentences(not_looked: Mapping[str, str]) -> list[str]:
    """Returns a sentence for each kind whose objects were not read. `not_looked`: why, by kind."""
    return [f"{kind}s were not looked at: {why}." for kind, why in sorted(not_looked.items())]


def announced_work_of(node: Node) -> list[str]:
    """Returns the work that a cloud announces for the node."""
    return list(announced_work(node.labels, node.reported_conditions))


def external_owner_on(observed: NodeSeen) -> ExternalOwner | None:
    """Returns the other controller that has its mark on the node."""
    conditions = {each.type: each.reason or "" for each in observed.status.conditions or () if each.status == "True"}
    taints = {taint.key for taint in observed.spec.taints or ()}
    return external_owner(NodeMarks(observed.labels, observed.annotations, taints, conditions))
