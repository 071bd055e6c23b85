"""All writes to clusters. Each is sent once, names our field manager, and states the object it expects."""

from datetime import datetime
from typing import Any

from kube.client.connection import FIELD_MANAGER, Connection
from kube.client.decoder import decode, decode_by
from kube.client.patches import Patch
from kube.client.queries import WHOLE_SPEC
from kube.resources import DRIVER_OBJECTS, JOBS, LEASES, NODES, PODS
from kube.structs import LeaseSeen, NodeSeen
from kube.structs.workload import JobSeen

JSON_PATCH = "application/json-patch+json"
AS_US = {"fieldManager": FIELD_MANAGER}
# Runs every stage of a request except storage: authorization, admission and validation
# (kubernetes.io/docs/reference/using-api/api-concepts, "Dry-run").
DRY_RUN = {"dryRun": "All"}
DRY_RUN_OPTION = {"dryRun": ["All"]}
# The message of a 400 for a dry run whose webhook does not declare itself free of side effects; the webhook was not
# called (kubernetes/kubernetes pull 66936).
NO_DRY_RUN = "does not support dry run"


def patch_node(connection: Connection, name: str, patch: Patch, *, is_dry_run: bool = False) -> NodeSeen:
    """Patches a node and returns it as it is after the patch, or would be after a dry run.

    :raises Conflict: when a test in the patch fails; nothing was changed
    :raises Absent: when the node does not exist
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
    """Patches a driver object and returns its complete spec. `kind` is NVIDIADriver or ClusterPolicy. Raises as
    `patch_node` does.
    """
    answer = _patch(connection, DRIVER_OBJECTS[kind].path(name), patch, is_dry_run=is_dry_run)
    return decode_by(WHOLE_SPEC, answer).spec or {}


def create_lease(connection: Connection, namespace: str, name: str, spec: dict[str, Any]) -> LeaseSeen:
    """Creates a Lease.

    :raises Conflict: when another holder was first
    """
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": name}, "spec": spec}
    body = connection.request("POST", LEASES.path(namespace=namespace), AS_US, body=lease)
    return decode(body, LeaseSeen)


def replace_lease(connection: Connection, observed: LeaseSeen, spec: dict[str, Any]) -> LeaseSeen:
    """Replaces the spec of a Lease.

    :raises Conflict: when the Lease changed since it was read
    """
    metadata = {
        "name": observed.name,
        "namespace": observed.metadata.namespace,
        "resourceVersion": observed.resource_version,
        "uid": observed.uid,
    }
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec}
    path = LEASES.path(observed.name, namespace=observed.metadata.namespace)
    return decode(connection.request("PUT", path, AS_US, body=lease), LeaseSeen)


def delete_lease(connection: Connection, observed: LeaseSeen) -> None:
    """Deletes a Lease.

    :raises Absent: when it does not exist
    :raises Conflict: when the Lease changed since it was read
    """
    preconditions = {"uid": observed.uid, "resourceVersion": observed.resource_version}
    options = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": preconditions}
    connection.request("DELETE", LEASES.path(observed.name, namespace=observed.metadata.namespace), body=options)


def create_job(connection: Connection, namespace: str, job: dict[str, Any]) -> JobSeen:
    """Creates a Job.

    :raises Conflict: when the name is taken
    """
    return decode(connection.request("POST", JOBS.path(namespace=namespace), AS_US, body=job), JobSeen)


def delete_job(connection: Connection, observed: JobSeen) -> None:
    """Deletes a Job with its pods, which the API server keeps by default.

    :raises Absent: when it does not exist
    :raises Conflict: when another Job has the name now
    """
    options = {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "propagationPolicy": "Background",
        "preconditions": {"uid": observed.uid},
    }
    connection.request("DELETE", JOBS.path(observed.name, namespace=observed.metadata.namespace), body=options)


def evict_pod(connection: Connection, namespace: str, name: str, *, uid: str, is_dry_run: bool = False) -> None:
    """Asks the API server to evict a pod. The pod keeps its own grace period, and its budgets are respected.

    Pending, ended and terminating pods are deleted without a look at budgets (kubernetes,
    pkg/registry/core/pod/storage/eviction.go).

    :raises Absent: when the pod does not exist
    :raises Conflict: when another pod has the name now
    :raises BudgetRefused: when a PodDisruptionBudget does not allow it now
    :raises TooManyRequests: when the API server throttles us
    :raises SeveralBudgets: when several budgets select the pod, which the API server never evicts
    :raises InternalError: when the server failed on it, as without an answer of a mandatory webhook
    :raises Forbidden: when we may not evict, or its namespace is being deleted
    """
    eviction = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": name, "namespace": namespace},
        "deleteOptions": {"preconditions": {"uid": uid}, **(DRY_RUN_OPTION if is_dry_run else {})},
    }
    path = PODS.path(name, namespace=namespace) + "/eviction"
    connection.request("POST", path, AS_US | DRY_RUN if is_dry_run else AS_US, body=eviction)


def delete_pod(connection: Connection, namespace: str, name: str, *, uid: str) -> None:
    """Deletes a pod past its budgets. It keeps its own grace period.

    :raises Absent: when the pod does not exist
    :raises Conflict: when another pod has the name now
    :raises Forbidden: when we may not delete pods
    """
    options = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": uid}}
    connection.request("DELETE", PODS.path(name, namespace=namespace), body=options)


def lease_spec(*, holder: str, seconds: int, acquired_at: datetime, now: datetime, transitions: int) -> dict[str, Any]:
    """Builds a Lease's spec. Its times are MicroTime, always with six digits."""
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
