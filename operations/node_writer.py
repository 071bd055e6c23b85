"""One guarded write to a node: read it, check its UID, patch it, return it as the API server then shows it."""

from collections.abc import Callable

from kube import client
from kube.structs import NodeSeen

TRIES = 4  # a heartbeat between our read and our write is common


class NotWritten(Exception):
    """The write is impossible now; the text says why, for a person."""


class Vetoed(NotWritten):
    """An app above forbids the write: a failure of this node alone, so it does not count towards a pause."""


def read_node(connection: client.Connection, uid: str, name: str) -> NodeSeen:
    """Returns the node.

    :raises NotWritten: when another node has the name
    :raises Absent: when no node has it
    """
    observed = client.get_node(connection, name)
    if observed.uid != uid:
        raise NotWritten(remade(name))
    return observed


def remade(name: str) -> str:
    return f"{name} is now a different node with the same name."


def change_node(
    connection: client.Connection,
    uid: str,
    name: str,
    wanted: Callable[[NodeSeen], client.Patch],
    *,
    before_write: Callable[[], None],
) -> NodeSeen:
    """Patches a node. An empty patch writes nothing.

    `before_write` runs after each read, and raises if the caller has lost its turn. `wanted` is called after it.

    :raises NotWritten: when the node is another one, is gone, keeps changing, or the API server refuses the patch
    :raises TooManyRequests: with the time to wait
    :raises ServerFailing: when the API server fails for other requests too
    :raises Unreachable: when the cluster does not answer
    """
    for _ in range(TRIES):
        try:
            observed = read_node(connection, uid, name)
            before_write()
            patch = wanted(observed)
            return _patch(connection, name, patch) if patch else observed
        except client.Conflict:
            continue
        except (client.Absent, client.Forbidden, client.Refused) as refusal:
            raise NotWritten(str(refusal)) from refusal
    raise NotWritten(f"{name} changed during each attempt to write it.")


def _patch(connection: client.Connection, name: str, patch: client.Patch) -> NodeSeen:
    """Patches the node.

    :raises Refused: also when a webhook fails for this node, which was read a moment ago; the failure must not block
        other nodes
    """
    try:
        return client.patch_node(connection, name, patch)
    except client.InternalError as failing:
        raise client.Refused(str(failing)) from failing
