"""Live questions to the API server: what is true now, not what was seen last."""

from typing import Any, TypeVar

import structlog

from kube.client.connection import Connection
from kube.client.decoder import Unread, decode, decode_by, decoder
from kube.client.discovery import NotServed, served
from kube.client.errors import Absent, NotAnApiServer, Unreadable
from kube.client.lists import list_pages
from kube.resources import (
    CONFIG_MAPS,
    DAEMON_SETS,
    DRIVER_OBJECTS,
    EVENTS,
    JOBS,
    LEASES,
    NAMESPACES,
    NODES,
    PODS,
    RESOURCE_SLICES,
    REVISIONS,
    Resource,
)
from kube.structs import (
    ClusterPolicySeen,
    ConfigMapSeen,
    DaemonSetSeen,
    LeaseSeen,
    NamespaceSeen,
    NodeSeen,
    NvidiaDriverSeen,
    PodSeen,
    RevisionSeen,
    Seen,
    ServerVersion,
    WholeSpec,
)
from kube.structs.dra import SliceSeen
from kube.structs.events import EventSeen
from kube.structs.workload import JobSeen

VERSION = decoder(ServerVersion)
WHOLE_SPEC = decoder(WholeSpec)
S = TypeVar("S", bound=Seen)
log = structlog.get_logger(__name__)


def kube_system_uid(connection: Connection) -> str:
    """What tells one cluster from another."""
    return get(connection, NAMESPACES, "kube-system").uid


def get_namespace(connection: Connection, name: str) -> NamespaceSeen | None:
    """None: there is none."""
    return _if_there(connection, NAMESPACES, name, namespace="")


def server_version(connection: Connection) -> str:
    """:raises NotAnApiServer: when what answers has no Kubernetes version"""
    try:
        found = decode_by(VERSION, connection.get("/version")).git_version
    except (Absent, Unreadable) as error:
        in_full = f"What answers at {connection.server} is no Kubernetes API server."
        raise NotAnApiServer("What answers is no Kubernetes API server.", in_full=in_full) from error
    if not found:
        in_full = f"What answers at {connection.server} names no Kubernetes version."
        raise NotAnApiServer("What answers names no Kubernetes version.", in_full=in_full)
    return found


def get_node(connection: Connection, name: str) -> NodeSeen:
    """:raises Absent: when there is no such node"""
    return get(connection, NODES, name)


def get_driver_object(connection: Connection, kind: str, name: str) -> NvidiaDriverSeen | ClusterPolicySeen:
    """`kind` is NVIDIADriver or ClusterPolicy."""
    return get_driver_object_whole(connection, kind, name)[0]


def get_driver_object_whole(
    connection: Connection, kind: str, name: str
) -> tuple[NvidiaDriverSeen | ClusterPolicySeen, dict[str, Any]]:
    """With its spec, of the same answer, also what we have no word for: to tell whether anything was changed."""
    answer = connection.get(DRIVER_OBJECTS[kind].path(name))
    return decode(answer, DRIVER_OBJECTS[kind].struct), decode_by(WHOLE_SPEC, answer).spec or {}


def list_daemonsets(connection: Connection, *, namespace: str = "") -> list[DaemonSetSeen]:
    return list_all(connection, DAEMON_SETS, namespace=namespace)


def list_revisions(connection: Connection, *, namespace: str = "") -> list[RevisionSeen]:
    return list_all(connection, REVISIONS, namespace=namespace)


def list_nodes(connection: Connection) -> list[NodeSeen]:
    return list_all(connection, NODES)


def list_nodes_and_unread(connection: Connection) -> tuple[list[NodeSeen], list[Unread]]:
    """For who may not take a node that cannot be read for one that is gone."""
    return list_and_unread(connection, NODES)


def list_pods(connection: Connection, *, namespace: str = "", label_selector: str = "") -> list[PodSeen]:
    return list_all(connection, PODS, namespace=namespace, label_selector=label_selector)


def list_pods_on(connection: Connection, node: str, *, namespace: str = "") -> list[PodSeen]:
    return list_all(connection, PODS, namespace=namespace, field_selector=f"spec.nodeName={node}")


def list_slices(connection: Connection) -> list[SliceSeen]:
    """In whichever version they are served. None: the API server serves none, or nobody offers anything."""
    try:
        resource = served(connection, RESOURCE_SLICES)
    except NotServed:
        return []
    return list_all(connection, resource)


def list_jobs(connection: Connection, *, label_selector: str = "") -> list[JobSeen]:
    return list_all(connection, JOBS, label_selector=label_selector)


def get_job(connection: Connection, namespace: str, name: str) -> JobSeen | None:
    """None: there is none."""
    return _if_there(connection, JOBS, name, namespace=namespace)


def get_daemonset(connection: Connection, namespace: str, name: str) -> DaemonSetSeen | None:
    """None: there is none."""
    return _if_there(connection, DAEMON_SETS, name, namespace=namespace)


def get_pod_spec(connection: Connection, namespace: str, name: str) -> dict[str, Any]:
    """All of it, also what we keep of no pod.

    :raises Absent: when there is no such pod
    """
    return decode_by(WHOLE_SPEC, connection.get(PODS.path(name, namespace=namespace))).spec or {}


def list_warnings(connection: Connection, namespace: str) -> list[EventSeen]:
    """What was reported as wrong there lately: Events are kept for an hour or so."""
    return list_all(connection, EVENTS, namespace=namespace, field_selector="type=Warning")


def get_config_map(connection: Connection, namespace: str, name: str) -> ConfigMapSeen | None:
    """None: there is none."""
    return _if_there(connection, CONFIG_MAPS, name, namespace=namespace)


def get_lease(connection: Connection, namespace: str, name: str) -> LeaseSeen | None:
    """None: there is none."""
    return _if_there(connection, LEASES, name, namespace=namespace)


def _if_there(connection: Connection, resource: Resource[S], name: str, *, namespace: str) -> S | None:
    try:
        return get(connection, resource, name, namespace=namespace)
    except Absent:
        return None


def get(connection: Connection, resource: Resource[S], name: str, *, namespace: str = "") -> S:
    """:raises Absent: when there is no such object"""
    return decode(connection.get(resource.path(name, namespace=namespace)), resource.struct)


def list_all(
    connection: Connection,
    resource: Resource[S],
    *,
    namespace: str = "",
    label_selector: str = "",
    field_selector: str = "",
) -> list[S]:
    items, _ = list_and_unread(
        connection, resource, namespace=namespace, label_selector=label_selector, field_selector=field_selector
    )
    return items


def list_and_unread(
    connection: Connection,
    resource: Resource[S],
    *,
    namespace: str = "",
    label_selector: str = "",
    field_selector: str = "",
) -> tuple[list[S], list[Unread]]:
    found = list_pages(
        connection, resource, namespace=namespace, label_selector=label_selector, field_selector=field_selector
    )
    pages = list(found)
    unread = [one for page in pages for one in page.unread]
    for one in unread:
        log.warning("an object cannot be read", kind=resource.name, object=one.name, reason=one.reason)
    return [item for page in pages for item in page.items], unread
