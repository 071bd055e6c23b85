"""The other controller that works on a node now: from its row, the node itself, or the controller's objects."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime, timedelta

from django.db.models import QuerySet

from fleet.models import ClusterMode, Node
from gpu.external_owners import SENTINEL, ExternalOwner, NodeMarks, announced_work, external_owner
from gpu.labels import CAPI_MACHINE
from kube.structs import NodeSeen
from operations.models import ExternalWork
from wording.instants import to_the_minute
from wording.lists import names

LATE = timedelta(minutes=5)  # without a list of the objects: they are listed once a minute


def external_owners(nodes: Collection[Node], *, now: datetime) -> dict[str, ExternalOwner]:
    """Returns the other controllers that work on nodes, by node UID. One query.

    NVSentinel only where nobody else does: whoever cancels its break-fix waits for the others.
    """
    rows = _looks({node.cluster_id for node in nodes})
    work = {
        (row.cluster_id, name): ExternalOwner(who, does, mark, row.looked_at if _is_late(row, now=now) else None)
        for row in rows
        for name, (who, does, mark) in row.by_node.items()
    }
    found: dict[str, ExternalOwner] = {}
    for node in nodes:
        by_mark, by_object = _by_marks(node), work.get((node.cluster_id, node.name))
        is_marked = by_mark is not None and (by_mark.name != SENTINEL or by_object is None)
        if owner := by_mark if is_marked else by_object:
            found[node.uid] = owner
    return found


def external_owner_of(node: Node, *, now: datetime) -> ExternalOwner | None:
    """Returns the other controller that works on the node. One query."""
    return external_owners([node], now=now).get(node.uid)


def _looks(cluster_ids: Collection[int]) -> QuerySet[ExternalWork]:
    """Returns the rows of operated clusters. Nobody lists the objects of another cluster, so its row is of long ago."""
    return ExternalWork.objects.filter(cluster__in=cluster_ids, cluster__mode=ClusterMode.OPERATE)


def _is_late(row: ExternalWork, *, now: datetime) -> bool:
    return row.looked_at is not None and now - row.looked_at > LATE


def _by_marks(node: Node) -> ExternalOwner | None:
    conditions = {each["type"]: each["reason"] for each in node.lifecycle or ()}
    return external_owner(NodeMarks(node.labels, node.annotations, {taint["key"] for taint in node.taints}, conditions))


def not_looked_at(nodes: Sequence[Node], *, now: datetime) -> Iterator[str]:
    """Yields whose work on the nodes of one cluster is unknown, each with the reason. One query."""
    if not nodes:
        return
    row = _looks([nodes[0].cluster_id]).first()
    if row is None or row.looked_at is None:
        yield "The work of remediators and machine controllers has not been checked yet."
        return
    if _is_late(row, now=now):
        yield f"The work of remediators and machine controllers was last checked at {to_the_minute(row.looked_at)}."
    yield from not_looked_sentences(row.not_looked)
    machines = [node.name for node in nodes if CAPI_MACHINE in node.annotations] if "Machine" in row.absent else []
    if machines:
        yield f"The Machines of {names(machines)} were not checked: they are in another cluster."


def not_looked_sentences(not_looked: Mapping[str, str]) -> list[str]:
    """Returns a sentence for each kind whose objects were not read. `not_looked`: why, by kind."""
    return [f"{kind}s were not checked: {why}." for kind, why in sorted(not_looked.items())]


def announced_work_of(node: Node) -> list[str]:
    """Returns the work that a cloud announces for the node."""
    return list(announced_work(node.labels, node.reported_conditions))


def external_owner_on(observed: NodeSeen) -> ExternalOwner | None:
    """Returns the other controller that has its mark on the node."""
    conditions = {each.type: each.reason or "" for each in observed.status.conditions or () if each.status == "True"}
    taints = {taint.key for taint in observed.spec.taints or ()}
    return external_owner(NodeMarks(observed.labels, observed.annotations, taints, conditions))
