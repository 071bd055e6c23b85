"""Which version of a kind a cluster serves, and whether it serves it at all.

As in kubernetes.io/docs/concepts/overview/kubernetes-api, "Discovery API": /apis/GROUP answers with an APIGroup.
"""

from dataclasses import replace

from fleet.kube.client import Connection
from fleet.kube.decoding import decode
from fleet.kube.errors import Absent, Forbidden
from fleet.kube.resources import Resource, S
from fleet.kube.structs.meta import Struct


class ServedVersion(Struct, frozen=True):
    version: str = ""


class ApiGroup(Struct, frozen=True):
    versions: list[ServedVersion] | None = None


def served(connection: Connection, resource: Resource[S]) -> Resource[S]:
    """The resource at the first version that we read and the server serves. Asks only where we read several.

    :raises Absent: when it serves none of them, in a sentence
    """
    if not resource.older_versions:
        return resource
    found = _versions(connection, resource)
    for version in (resource.version, *resource.older_versions):
        if version in found:
            return replace(resource, group_version=f"{resource.group}/{version}")
    ours = " or ".join((resource.version, *resource.older_versions))
    raise Absent(f"This API server serves {resource.group} only as {', '.join(found) or 'nothing'}, not as {ours}.")


def _versions(connection: Connection, resource: Resource[S]) -> list[str]:
    try:
        body = connection.get(f"/apis/{resource.group}")
    except Absent as error:
        raise Absent(f"The API group {resource.group} is not installed.") from error
    except Forbidden:
        # Discovery is open to whoever is authenticated, unless somebody closed it: the list itself will tell.
        return [resource.version]
    return [one.version for one in decode(body, ApiGroup).versions or ()]
