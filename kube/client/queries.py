"""Live reads from the API server, as opposed to stored rows."""

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
    """Returns the UID of kube-system, which identifies a cluster."""
    return get(connection, NAMESPACES, "kube-system").uid


def get_namespace(connection: Connection, name: str) -> NamespaceSeen | None:
    """Returns the namespace. None: it does not exist."""
    return _get_or_none(connection, NAMESPACES, name, namespace="")


def server_version(connection: Connection) -> str:
    """Returns the Kubernetes version.

    :raises NotAnApiServer: when the server reports no Kubernetes version
    """
    try:
        git_version = decode_by(VERSION, connection.get("/version")).git_version
    except (Absent, Unreadable) as error:
        in_full = f"{connection.server} is not a Kubernetes API server."
        raise NotAnApiServer("The server is not a Kubernetes API server.", in_full=in_full) from error
    if not git_version:
        in_full = f"{connection.server} reports no Kubernetes version."
        raise NotAnApiServer("The server reports no Kubernetes version.", in_full=in_full)
    return git_version


def get_node(connection: Connection, name: str) -> NodeSeen:
    """Returns the node.

    :raises Absent: when the node does not exist
    """
    return get(connection, NODES, name)


def get_driver_object(connection: Connection, kind: str, name: str) -> NvidiaDriverSeen | ClusterPolicySeen:
    """Returns the object; `kind` is NVIDIADriver or ClusterPolicy."""
    return get_driver_object_whole(connection, kind, name)[0]


def get_driver_object_whole(
    connection: Connection, kind: str, name: str
) -> tuple[NvidiaDriverSeen | ClusterPolicySeen, dict[str, Any]]:
    """Returns the object and its complete spec from one answer, to detect changes in fields that our structs omit."""
    answer = connection.get(DRIVER_OBJECTS[kind].path(name))
    return decode(answer, DRIVER_OBJECTS[kind].struct), decode_by(WHOLE_SPEC, answer).spec or {}


def list_daemonsets(connection: Connection, *, namespace: str = "") -> list[DaemonSetSeen]:
    return list_all(connection, DAEMON_SETS, namespace=namespace)


def list_revisions(connection: Connection, *, namespace: str = "") -> list[RevisionSeen]:
    return list_all(connection, REVISIONS, namespace=namespace)


def list_nodes(connection: Connection) -> list[NodeSeen]:
    return list_all(connection, NODES)


def list_nodes_and_unread(connection: Connection) -> tuple[list[NodeSeen], list[Unread]]:
    """Returns nodes and unreadable nodes, for callers that must not treat an unreadable node as removed."""
    return list_and_unread(connection, NODES)


def list_pods(connection: Connection, *, namespace: str = "", label_selector: str = "") -> list[PodSeen]:
    return list_all(connection, PODS, namespace=namespace, label_selector=label_selector)


def list_pods_on(connection: Connection, node: str, *, namespace: str = "") -> list[PodSeen]:
    return list_all(connection, PODS, namespace=namespace, field_selector=f"spec.nodeName={node}")


def list_slices(connection: Connection) -> list[SliceSeen]:
    """Returns the ResourceSlices in any served version. Empty also when the server serves none."""
    try:
        resource = served(connection, RESOURCE_SLICES)
    except NotServed:
        return []
    return list_all(connection, resource)


def list_jobs(connection: Connection, *, label_selector: str = "") -> list[JobSeen]:
    return list_all(connection, JOBS, label_selector=label_selector)


def get_job(connection: Connection, namespace: str, name: str) -> JobSeen | None:
    """Returns the Job. None: it does not exist."""
    return _get_or_none(connection, JOBS, name, namespace=namespace)


def get_daemonset(connection: Connection, namespace: str, name: str) -> DaemonSetSeen | None:
    """Returns the DaemonSet. None: it does not exist."""
    return _get_or_none(connection, DAEMON_SETS, name, namespace=namespace)


def get_pod_spec(connection: Connection, namespace: str, name: str) -> dict[str, Any]:
    """Returns the complete spec of a pod, including fields that our structs omit.

    :raises Absent: when the pod does not exist
    """
    return decode_by(WHOLE_SPEC, connection.get(PODS.path(name, namespace=namespace))).spec or {}


def list_warnings(connection: Connection, namespace: str) -> list[EventSeen]:
    """Returns recent warning Events of a namespace; the API server keeps Events for about an hour."""
    return list_all(connection, EVENTS, namespace=namespace, field_selector="type=Warning")


def get_config_map(connection: Connection, namespace: str, name: str) -> ConfigMapSeen | None:
    """Returns the ConfigMap. None: it does not exist."""
    return _get_or_none(connection, CONFIG_MAPS, name, namespace=namespace)


def get_lease(connection: Connection, namespace: str, name: str) -> LeaseSeen | None:
    """Returns the Lease. None: it does not exist."""
    return _get_or_none(connection, LEASES, name, namespace=namespace)


def _get_or_none(connection: Connection, resource: Resource[S], name: str, *, namespace: str) -> S | None:
    try:
        return get(connection, resource, name, namespace=namespace)
    except Absent:
        return None


def get(connection: Connection, resource: Resource[S], name: str, *, namespace: str = "") -> S:
    """Returns the object.

    :raises Absent: when it does not exist
    """
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
    unread = [item for page in pages for item in page.unread]
    for item in unread:
        log.warning("an object cannot be read", kind=resource.name, object=item.name, reason=item.reason)
    return [item for page in pages for item in page.items], unread
