"""Leave a cluster as if we had never been there: every label, annotation and Job of ours, found in the cluster itself.

It asks the API server and not our rows, for it is made for the day on which those cannot be trusted.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from gpu.labels import HELD_BY, HELD_SINCE, MANAGED_BY, OPTED_OUT_BY, OURS, PULLS_FOR, UPGRADE_SKIP
from gpu.neighbours import NEIGHBOURS, Metadata, as_before, earlier_values
from kube import client
from kube.structs import NodeSeen


@dataclass(frozen=True)
class Mark:
    """A node that carries something of ours."""

    node: str
    uid: str
    plan: str
    since: str
    has_label: bool
    is_held: bool = True  # our annotation is beside the label, or where it was
    opted_out: tuple[str, ...] = ()  # labels and annotations by which neighbours leave it alone, as we wrote them


def marks(connection: client.Connection) -> list[Mark]:
    """One list of all nodes. The annotation tells our holds from those of others."""
    return [
        Mark(
            node=node.name,
            uid=node.uid,
            plan=node.annotations.get(HELD_BY) or node.annotations.get(OPTED_OUT_BY, ""),
            since=node.annotations.get(HELD_SINCE, ""),
            has_label=UPGRADE_SKIP in node.labels,
            is_held=HELD_BY in node.annotations,
            opted_out=tuple(NEIGHBOURS[key].mark for key in earlier_values(_metadata(node))),
        )
        for node in client.list_nodes(connection)
        if _is_marked(node)
    ]


def remove(connection: client.Connection, found: list[Mark]) -> Iterator[tuple[Mark, str]]:
    """Take the marks off, one node after another. With each, why it could not be done; blank: it is done."""
    for mark in found:
        try:
            node = client.get_node(connection, mark.node)
            if patch := _without_marks(node):
                client.patch_node(connection, mark.node, patch)
        except client.ClusterError as error:
            yield mark, str(error)
        else:
            yield mark, ""


def jobs(connection: client.Connection) -> list[client.JobSeen]:
    """Every Job of ours, in whichever namespace: by its label, which its pod has, too."""
    return client.list_jobs(connection, label_selector=f"{MANAGED_BY}={OURS},{PULLS_FOR}")


def remove_jobs(connection: client.Connection, found: list[client.JobSeen]) -> Iterator[tuple[client.JobSeen, str]]:
    """Delete them with their pods. With each, why it could not be done; blank: it is done."""
    for job in found:
        try:
            client.delete_job(connection, job)
        except client.Absent:
            yield job, ""
        except client.ClusterError as error:
            yield job, str(error)
        else:
            yield job, ""


def _is_marked(node: NodeSeen) -> bool:
    return HELD_BY in node.annotations or OPTED_OUT_BY in node.annotations


def _without_marks(node: NodeSeen) -> client.Patch:
    labels: dict[str, str | None] = {}
    annotations: dict[str, str | None] = {}
    if HELD_BY in node.annotations:
        labels |= {UPGRADE_SKIP: None}
        annotations |= {HELD_BY: None, HELD_SINCE: None}
    if OPTED_OUT_BY in node.annotations:
        before = as_before(_metadata(node), {})
        labels |= before.labels
        annotations |= before.annotations
    return client.metadata_patch(node, labels=labels, annotations=annotations)


def _metadata(node: NodeSeen) -> Metadata:
    return Metadata(node.labels, node.annotations)
