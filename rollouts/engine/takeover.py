"""Leave a cluster as if we had never been there: every label and annotation of ours, found in the cluster itself.

It asks the API server and not our rows, for it is made for the day on which those cannot be trusted.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from gpu.labels import HELD_BY, HELD_SINCE, UPGRADE_SKIP
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


def marks(connection: client.Connection) -> list[Mark]:
    """One list of all nodes. The annotation tells our holds from those of others."""
    return [
        Mark(
            node.name,
            node.uid,
            node.annotations[HELD_BY],
            node.annotations.get(HELD_SINCE, ""),
            UPGRADE_SKIP in node.labels,
        )
        for node in client.list_nodes(connection)
        if HELD_BY in node.annotations
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


def _without_marks(node: NodeSeen) -> client.Patch:
    if HELD_BY not in node.annotations:
        return []
    return client.node_patch(node, labels={UPGRADE_SKIP: None}, annotations={HELD_BY: None, HELD_SINCE: None})
