"""Objects of kinds that not every cluster serves, found by discovery: their groups have moved between releases."""

from collections.abc import Mapping
from typing import Any

from kube.client.connection import Connection
from kube.client.decoder import decode_by, decoder
from kube.client.errors import Absent
from kube.client.patches import Patch
from kube.client.writes import AS_US, JSON_PATCH
from kube.resources import Resource
from kube.structs import CustomSeen
from kube.structs.meta import Struct


class PreferredVersion(Struct, frozen=True):
    group_version: str = ""


class NamedGroup(Struct, frozen=True):
    name: str = ""
    preferred_version: PreferredVersion = PreferredVersion()


class NamedGroups(Struct, frozen=True):
    groups: list[NamedGroup] | None = None


class ServedKind(Struct, frozen=True):
    name: str = ""
    kind: str = ""


class ServedKinds(Struct, frozen=True):
    resources: list[ServedKind] | None = None


GROUPS, KINDS, OBJECT = decoder(NamedGroups), decoder(ServedKinds), decoder(CustomSeen)


def find_kinds(connection: Connection, wanted: Mapping[str, str]) -> dict[str, Resource[CustomSeen]]:
    """Returns the resources of kinds that the cluster serves. `wanted` has the suffix of the API group by kind.

    Costs one request, and one more for each API group with such a suffix.
    """
    found: dict[str, Resource[CustomSeen]] = {}
    for group in decode_by(GROUPS, connection.get("/apis")).groups or ():
        its = {kind for kind, suffix in wanted.items() if group.name == suffix or group.name.endswith(f".{suffix}")}
        if not its:
            continue
        try:
            served = decode_by(KINDS, connection.get(f"/apis/{group.preferred_version.group_version}")).resources
        except Absent:  # the group was removed between the two requests
            continue
        for each in served or ():
            if each.kind in its and "/" not in each.name:
                version = group.preferred_version.group_version
                found.setdefault(each.kind, Resource(version, each.name, each.kind, CustomSeen))
    return found


def get_custom(connection: Connection, resource: Resource[CustomSeen], name: str, namespace: str = "") -> CustomSeen:
    """:raises Absent: when the object does not exist"""
    return decode_by(OBJECT, connection.get(resource.path(name, namespace=namespace)))


def create_custom(connection: Connection, resource: Resource[CustomSeen], manifest: Mapping[str, Any]) -> CustomSeen:
    """Creates a cluster-scoped object. `manifest` has no apiVersion: discovery knows it.

    :raises Conflict: when the name is taken
    :raises Refused: when a webhook or the schema refuses it
    """
    body = {"apiVersion": resource.group_version, "kind": resource.title, **manifest}
    return decode_by(OBJECT, connection.request("POST", resource.path(), AS_US, body=body))


def patch_custom(
    connection: Connection, resource: Resource[CustomSeen], name: str, patch: Patch, namespace: str = ""
) -> CustomSeen:
    """:raises Conflict: when a test in the patch fails; nothing was changed"""
    path = resource.path(name, namespace=namespace)
    return decode_by(OBJECT, connection.request("PATCH", path, AS_US, body=patch, content_type=JSON_PATCH))


def delete_custom(connection: Connection, resource: Resource[CustomSeen], observed: CustomSeen) -> None:
    """Deletes this object, and no other of its name.

    :raises Absent: when it does not exist
    :raises Conflict: when another object has the name now
    """
    options = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": observed.uid}}
    connection.request("DELETE", resource.path(observed.name, namespace=observed.metadata.namespace), body=options)
