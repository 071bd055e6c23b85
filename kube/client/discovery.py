"""API discovery: the version of a kind that a cluster serves, if any.

As in kubernetes.io/docs/concepts/overview/kubernetes-api, "Discovery API": /apis names the groups, /apis/GROUP the
versions of one, /apis/GROUP/VERSION its kinds.
"""

from dataclasses import replace

from kube.client.connection import Connection
from kube.client.decoder import decode_by, decoder
from kube.client.errors import Absent, ClusterError, Forbidden, NotAnApiServer
from kube.resources import Resource, S
from kube.structs.meta import Struct


class NotServed(Absent):
    """The server definitely does not serve this kind, so no object of it exists."""


class ServedVersion(Struct, frozen=True):
    version: str = ""


class ApiGroup(Struct, frozen=True):
    versions: list[ServedVersion] | None = None


class ServedName(Struct, frozen=True):
    name: str = ""


class ApiGroups(Struct, frozen=True):
    groups: list[ServedName] | None = None


class ApiResources(Struct, frozen=True):
    resources: list[ServedName] | None = None


ONE_GROUP, GROUPS, RESOURCES = decoder(ApiGroup), decoder(ApiGroups), decoder(ApiResources)


def served(connection: Connection, resource: Resource[S]) -> Resource[S]:
    """Returns the resource at the first version that we support and the server serves. Makes no request for one
    version.

    :raises NotServed: when the server serves none of them
    """
    if not resource.older_versions:
        return resource
    served_versions = _versions(connection, resource)
    for version in (resource.version, *resource.older_versions):
        if version in served_versions:
            return replace(resource, group_version=f"{resource.group}/{version}")
    ours = " or ".join((resource.version, *resource.older_versions))
    theirs = ", ".join(served_versions) or "no version"
    raise NotServed(f"The API server serves {resource.group} as {theirs}, not as {ours}.")


def _versions(connection: Connection, resource: Resource[S]) -> list[str]:
    try:
        body = connection.get(f"/apis/{resource.group}")
    except Absent as error:
        raise NotServed(f"The API group {resource.group} is not installed.") from error
    except Forbidden:
        # Every authenticated user may read discovery unless it was restricted. The list request itself will tell.
        return [resource.version]
    return [served_version.version for served_version in decode_by(ONE_GROUP, body).versions or ()]


def meaning_of_404(connection: Connection, resource: Resource[S]) -> ClusterError:
    """Returns the error that a 404 means: a kind that is not served, or a 404 of a proxy, which must delete no rows.

    Returns NotServed only if discovery agrees. Costs one or two requests.
    """
    try:
        if _is_named(connection, resource):
            return NotAnApiServer(
                f"{resource.name} returned 404, although discovery lists it. The 404 may come from a proxy.",
            )
    except Forbidden:
        pass  # Discovery is restricted. The 404 counts, except for kinds that every cluster serves.
    except ClusterError as error:
        return error
    if not resource.group:
        return NotAnApiServer(f"The server has no {resource.name}. Every Kubernetes API server has them.")
    return NotServed(f"The API server does not serve {resource.name}.")


def meaning_of_403(connection: Connection, resource: Resource[S], refusal: Forbidden) -> ClusterError:
    """Returns the error that a 403 means. RBAC refuses a kind before the server looks whether it serves it.

    Returns NotServed only if discovery has no such kind; without an answer the refusal counts. Two requests at most.
    """
    if not resource.group:
        return refusal
    try:
        is_served = _is_named(connection, resource)
    except ClusterError:
        return refusal
    return refusal if is_served else NotServed(f"The API server does not serve {resource.name}.")


def _is_named(connection: Connection, resource: Resource[S]) -> bool:
    try:
        resources = decode_by(RESOURCES, connection.get(resource.base)).resources
    except Absent:
        if resource.group and not decode_by(GROUPS, connection.get("/apis")).groups:
            raise NotAnApiServer("The server lists no API groups.") from None
        return False  # the group, or this version of it, is not served
    return any(served_name.name == resource.plural for served_name in resources or ())
