"""Everything we ever write to a cluster. Each write is sent once, names us, and says what it expected to find."""

from datetime import datetime
from typing import Any

from kube.client.connection import FIELD_MANAGER, Connection
from kube.client.decoder import decode, decode_by
from kube.client.patches import Patch
from kube.client.queries import WHOLE_SPEC
from kube.resources import DRIVER_OBJECTS, JOBS, LEASES, NODES
from kube.structs import LeaseSeen, NodeSeen
from kube.structs.workload import JobSeen

JSON_PATCH = "application/json-patch+json"
AS_US = {"fieldManager": FIELD_MANAGER}
# Every stage of a request but the last: authorised, admitted and validated as it is without, and not stored
# (kubernetes.io/docs/reference/using-api/api-concepts, "Dry-run").
DRY_RUN = {"dryRun": "All"}
# Of a request to be stored nowhere, whose webhook has not said that it does without side effects: 400, and it was not
# asked (kubernetes/kubernetes pull 66936).
NO_DRY_RUN = "does not support dry run"


def patch_node(connection: Connection, name: str, patch: Patch, *, is_dry_run: bool = False) -> NodeSeen:
    """The node as it is after the patch, or would be.

    :raises Conflict: when a test in the patch does not hold, and nothing was changed
    :raises Absent: when the node is gone
    """
    return decode(_patch(connection, NODES.path(name), patch, is_dry_run=is_dry_run), NodeSeen)


def patch_driver_object(
    connection: Connection,
    kind: str,
    name: str,
    patch: Patch,
    *,
    is_dry_run: bool = False,
) -> dict[str, Any]:
    """Its whole spec afterwards. `kind` is NVIDIADriver or ClusterPolicy. Raises as `patch_node` does."""
    answer = _patch(connection, DRIVER_OBJECTS[kind].path(name), patch, is_dry_run=is_dry_run)
    return decode_by(WHOLE_SPEC, answer).spec or {}


def create_lease(connection: Connection, namespace: str, name: str, spec: dict[str, Any]) -> LeaseSeen:
    """:raises Conflict: when somebody else was first"""
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": name}, "spec": spec}
    body = connection.request("POST", LEASES.path(namespace=namespace), AS_US, body=lease)
    return decode(body, LeaseSeen)


def replace_lease(connection: Connection, seen: LeaseSeen, spec: dict[str, Any]) -> LeaseSeen:
    """:raises Conflict: when somebody else wrote it since we saw it"""
    metadata = {
        "name": seen.name,
        "namespace": seen.metadata.namespace,
        "resourceVersion": seen.resource_version,
        "uid": seen.uid,
    }
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec}
    path = LEASES.path(seen.name, namespace=seen.metadata.namespace)
    return decode(connection.request("PUT", path, AS_US, body=lease), LeaseSeen)


def delete_lease(connection: Connection, seen: LeaseSeen) -> None:
    """
    :raises Absent: when it is gone
    :raises Conflict: when somebody wrote it since we saw it
    """
    preconditions = {"uid": seen.uid, "resourceVersion": seen.resource_version}
    options = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": preconditions}
    connection.request("DELETE", LEASES.path(seen.name, namespace=seen.metadata.namespace), body=options)


def create_job(connection: Connection, namespace: str, job: dict[str, Any]) -> JobSeen:
    """:raises Conflict: when there is one of this name already"""
    return decode(connection.request("POST", JOBS.path(namespace=namespace), AS_US, body=job), JobSeen)


def delete_job(connection: Connection, seen: JobSeen) -> None:
    """With its pods, which the API server keeps where a Job's deletion does not say otherwise.

    :raises Absent: when it is gone
    :raises Conflict: when it is another Job of the same name by now
    """
    options = {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "propagationPolicy": "Background",
        "preconditions": {"uid": seen.uid},
    }
    connection.request("DELETE", JOBS.path(seen.name, namespace=seen.metadata.namespace), body=options)


def lease_spec(*, holder: str, seconds: int, acquired_at: datetime, now: datetime, transitions: int) -> dict[str, Any]:
    """A Lease's spec. Its times are MicroTime: six digits, always."""
    return {
        "holderIdentity": holder,
        "leaseDurationSeconds": seconds,
        "acquireTime": acquired_at.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        "renewTime": now.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        "leaseTransitions": transitions,
    }


def _patch(connection: Connection, path: str, patch: Patch, *, is_dry_run: bool) -> bytes:
    query = AS_US | DRY_RUN if is_dry_run else AS_US
    return connection.request("PATCH", path, query, body=patch, content_type=JSON_PATCH)
