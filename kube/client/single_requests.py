"""Ask a cluster something once, outside of a window."""

from collections.abc import Iterator
from contextlib import contextmanager

from kube.client.connection import Connection, connect
from kube.client.errors import Refused
from kube.client.queries import kube_system_uid


@contextmanager
def reach(kubeconfig_path: str, context: str, *, uid: str) -> Iterator[Connection]:
    """A connection to the very cluster of this UID.

    :raises Refused: when another cluster answers at its address
    :raises ClusterError: when nobody does
    """
    connection = connect(kubeconfig_path, context)
    try:
        if kube_system_uid(connection) != uid:
            raise Refused("Another cluster answers at its address.")
        yield connection
    finally:
        connection.close()
