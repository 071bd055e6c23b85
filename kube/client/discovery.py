"""Which version of a kind a cluster serves, and whether it serves it at all.

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
    """There is no such kind here, for sure: so there is no object of it either."""


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
    """The resource at the first version that we read and the server serves. Asks only where we read several.

    :raises NotServed: when it serves none of them, in a sentence
    """
    if not resource.older_versions:
        return resource
    found = _versions(connection, resource)
    for version in (resource.version, *resource.older_versions):
        if version in found:
            return replace(resource, group_version=f"{resource.group}/{version}")
    ours = " or ".join((resource.version, *resource.older_versions))
    raise NotServed(f"This API server serves {resource.group} only as {', '.join(found) or 'nothing'}, not as {ours}.")


def _versions(connection: Connection, resource: Resource[S]) -> list[str]:
    try:
        body = connection.get(f"/apis/{resource.group}")
    except Absent as error:
        raise NotServed(f"The API group {resource.group} is not installed.") from error
    except Forbidden:
        # Discovery is open to whoever is authenticated, unless somebody closed it: the list itself will tell.
        return [resource.version]
    return [one.version for one in decode_by(ONE_GROUP, body).versions or ()]


def meaning_of_404(connection: Connection, resource: Resource[S]) -> ClusterError:
    """Whether a kind is not there, or something on the way only says so: a proxy's 404 must not delete a cluster.

    NotServed: discovery agrees. Costs one or two requests.
    """
    try:
        if _is_named(connection, resource):
            return NotAnApiServer(
                f"What answers says 404 for {resource.name}, although its discovery names it: it may be a proxy's.",
            )
    except Forbidden:
        pass  # Discovery is closed here; the 404 itself is all there is to go by, but for what no cluster lacks.
    except ClusterError as error:
        return error
    if not resource.group:
        return NotAnApiServer(f"What answers has no {resource.name}. Every Kubernetes API server has.")
    return NotServed(f"This API server serves no {resource.name}.")


def _is_named(connection: Connection, resource: Resource[S]) -> bool:
    try:
        found = decode_by(RESOURCES, connection.get(resource.base)).resources
    except Absent:
        if resource.group and not decode_by(GROUPS, connection.get("/apis")).groups:
            raise NotAnApiServer("What answers names no API group at all.") from None
        return False  # the group, or this version of it, is not there
    return any(one.name == resource.plural for one in found or ())
