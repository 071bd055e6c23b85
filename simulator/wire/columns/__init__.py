"""What kubectl's tables show, kind by kind: the printers of k8s.io/kubernetes as tables."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from simulator.kinds import Kind
from simulator.wire.ages import age
from simulator.wire.columns.allocation import CLAIM_COLUMNS, QUOTA_COLUMNS, SLICE_COLUMNS
from simulator.wire.columns.column import AGE, CREATED_AT, NAME, Column, counting, reading
from simulator.wire.columns.custom import columns_of
from simulator.wire.columns.node import NODE_COLUMNS
from simulator.wire.columns.pod import POD_COLUMNS
from simulator.wire.columns.workload import (
    BUDGET_COLUMNS,
    DAEMON_SET_COLUMNS,
    DEPLOYMENT_COLUMNS,
    JOB_COLUMNS,
    REPLICA_SET_COLUMNS,
    STATEFUL_SET_COLUMNS,
)

Columns = tuple[Column, ...]
Obj = dict[str, Any]


def _last_seen(event: Obj, now: datetime) -> str:
    return age(event.get("lastTimestamp") or event.get("eventTime") or event.get("firstTimestamp"), now)


def _involved(event: Obj, _now: datetime) -> str:
    involved = event.get("involvedObject") or {}
    return f"{involved.get('kind', '').lower()}/{involved.get('name', '')}"


def _controller(revision: Obj, _now: datetime) -> str:
    owners = [owner for owner in revision["metadata"].get("ownerReferences") or () if owner.get("controller")]
    return (
        f"{owners[0]['kind'].lower()}.{owners[0]['apiVersion'].partition('/')[0]}/{owners[0]['name']}" if owners else ""
    )


def _role(binding: Obj, _now: datetime) -> str:
    return f"{binding['roleRef']['kind']}/{binding['roleRef']['name']}"


EVENT_COLUMNS = (
    Column("Last Seen", _last_seen),
    Column("Type", reading("type")),
    Column("Reason", reading("reason")),
    Column("Object", _involved),
    Column("Subobject", reading("involvedObject.fieldPath"), priority=1),
    Column("Source", reading("source.component"), priority=1),
    Column("Message", reading("message")),
    Column("First Seen", lambda event, now: age(event.get("firstTimestamp"), now), priority=1),
    Column("Count", reading("count", 1), type="integer", priority=1),
    Column("Name", reading("metadata.name"), format="name", priority=1),
)
BINDING_COLUMNS = (NAME, Column("Role", _role), AGE)

COLUMNS: Mapping[tuple[str, str], Columns] = {
    ("", "nodes"): NODE_COLUMNS,
    ("", "pods"): POD_COLUMNS,
    ("", "events"): EVENT_COLUMNS,
    ("", "namespaces"): (NAME, Column("Status", reading("status.phase")), AGE),
    ("", "configmaps"): (NAME, Column("Data", counting("data")), AGE),
    ("", "resourcequotas"): QUOTA_COLUMNS,
    ("", "secrets"): (NAME, Column("Type", reading("type")), Column("Data", counting("data"), type="integer"), AGE),
    ("", "serviceaccounts"): (NAME, Column("Secrets", counting("secrets")), AGE),
    ("apps", "controllerrevisions"): (
        NAME,
        Column("Controller", _controller),
        Column("Revision", reading("revision"), type="integer"),
        AGE,
    ),
    ("apps", "daemonsets"): DAEMON_SET_COLUMNS,
    ("apps", "deployments"): DEPLOYMENT_COLUMNS,
    ("apps", "replicasets"): REPLICA_SET_COLUMNS,
    ("apps", "statefulsets"): STATEFUL_SET_COLUMNS,
    ("batch", "jobs"): JOB_COLUMNS,
    ("policy", "poddisruptionbudgets"): BUDGET_COLUMNS,
    ("coordination.k8s.io", "leases"): (NAME, Column("Holder", reading("spec.holderIdentity")), AGE),
    ("scheduling.k8s.io", "priorityclasses"): (
        NAME,
        Column("Value", reading("value"), type="integer"),
        Column("Global-Default", reading("globalDefault", default=False), type="boolean"),
        AGE,
        Column("PreemptionPolicy", reading("preemptionPolicy")),
    ),
    ("resource.k8s.io", "resourceclaims"): CLAIM_COLUMNS,
    ("resource.k8s.io", "resourceslices"): SLICE_COLUMNS,
    ("rbac.authorization.k8s.io", "clusterroles"): (NAME, CREATED_AT),
    ("rbac.authorization.k8s.io", "roles"): (NAME, CREATED_AT),
    ("rbac.authorization.k8s.io", "clusterrolebindings"): BINDING_COLUMNS,
    ("rbac.authorization.k8s.io", "rolebindings"): BINDING_COLUMNS,
    ("apiextensions.k8s.io", "customresourcedefinitions"): (NAME, CREATED_AT),
}


def columns_for(kind: Kind, definition: Obj | None) -> Columns:
    if definition is not None:
        return columns_of(definition, kind.version)
    return COLUMNS.get(kind.shelf, (NAME, AGE))
