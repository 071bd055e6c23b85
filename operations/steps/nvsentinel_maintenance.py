"""Maintenance by NVSentinel: a MaintenanceRequest takes a node out of service, and its deletion gives the node back.

NVSentinel cordons and drains by its own settings, and uncordons. NVIDIA/NVSentinel, its tutorial on node maintenance
and docs/configuration/lifecycle-manager, read 2026-11-30; lifecycle R15 and R16.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any, ClassVar

from gpu.cordons import whose_cordon
from gpu.labels import MAINTENANCE_OF, MANAGED_BY, OURS, SENTINEL_CORDON, SENTINEL_STATE
from kube import client
from kube.resources import Resource
from kube.structs import CustomSeen, NodeSeen
from kube.structs.meta import Condition
from operations.lifecycle import NodeProgress
from operations.models import Operation, OperationNode
from operations.steps.base import NodeStep, NodeWork, StepResult, done_result, failed, wait

KIND, GROUP_SUFFIX = "MaintenanceRequest", "nvidia.com"
EMITTED = "HealthEventEmitted"  # condition: NVSentinel took up the request
LONGEST_MESSAGE = 1000
CORDONED_WITHIN = timedelta(minutes=2)  # lifecycle R16
DRAINED = frozenset({"drain-succeeded", "remediating", "remediation-succeeded", "remediation-failed"})
NOT_SERVED = f"The cluster serves no {KIND}. Enable the lifecycle-manager of NVSentinel, or drain the node yourself."
RIGHT = "An admin may apply deploy/rbac/quarterdeck.yaml."
WITHDRAWN = "withdrawn"  # in the progress of a cancelled node


class StartMaintenanceStep(NodeStep):
    key: ClassVar[str] = "start_maintenance"
    title: ClassVar[str] = "Ask NVSentinel for maintenance"
    effect: ClassVar[str] = "NVSentinel cordons and drains them."
    needs_place: ClassVar[bool] = True
    waits_for_freeze: ClassVar[bool] = True
    evicts: ClassVar[bool] = True

    def run(self, work: NodeWork) -> StepResult:
        resource = _resource(work.connection)
        if resource is None:
            return failed(NOT_SERVED)
        node = client.get_node(work.connection, work.node.node_name)
        if node.uid != work.node.node_uid:
            return failed(f"{work.node.node_name} is now a different node with the same name.")
        name = _name_of(work.node)
        observed = _read(work.connection, resource, name)
        if observed is None and work.node.progress.get("request"):
            return failed(f"Somebody deleted {KIND} {name}: NVSentinel gives the node back.")
        if observed is None:
            work.guard()
            try:
                observed = client.create_custom(work.connection, resource, _manifest(work, name))
            except client.Conflict:  # another worker was faster, or somebody took the name: read again
                return wait(f"{KIND} {name} exists by now.")
            except (client.Refused, client.Forbidden) as refusal:
                return failed(f"The API server refused the {KIND}: {refusal} {RIGHT}")
        if not _is_ours(observed, work.node):
            return failed(f"{KIND} {name} has another owner.")
        if observed.metadata.deletion_timestamp is not None:
            return failed(f"Somebody deleted {KIND} {name}: NVSentinel gives the node back.")
        return _progress(observed, node, request=name, now=work.clock())

    def left_behind(self) -> Sequence[int]:
        cancelled = OperationNode.objects.of_kinds("start-maintenance").filter(
            state=NodeProgress.CANCELLED, step_since__isnull=False
        )
        return list(cancelled.exclude(progress__has_key=WITHDRAWN).values_list("operation", flat=True).distinct())

    def clean_up(self, operation: Operation, connection: client.Connection, *, clock: Callable[[], datetime]) -> None:
        """Takes back the requests of cancelled nodes: NVSentinel stops its drain and uncordons."""
        rows = OperationNode.objects.filter(operation=operation, state=NodeProgress.CANCELLED, step_since__isnull=False)
        for row in rows.exclude(progress__has_key=WITHDRAWN):
            resource = _resource(connection)
            observed = _read(connection, resource, _name_of(row)) if resource else None
            if resource and observed is not None and _is_ours(observed, row):
                with suppress(client.Absent, client.Conflict):
                    client.delete_custom(connection, resource, observed)
            progress = row.progress | {WITHDRAWN: clock().isoformat()}
            OperationNode.objects.filter(pk=row.pk, state=NodeProgress.CANCELLED).update(progress=progress)


class EndMaintenanceStep(NodeStep):
    key: ClassVar[str] = "end_maintenance"
    title: ClassVar[str] = "End maintenance"
    effect: ClassVar[str] = "NVSentinel uncordons them."
    is_release: ClassVar[bool] = True

    def run(self, work: NodeWork) -> StepResult:
        resource = _resource(work.connection)
        if resource is None:
            return failed(NOT_SERVED)
        rows = OperationNode.objects.of_kinds("start-maintenance").filter(
            operation__cluster=work.operation.cluster_id, node_uid=work.node.node_uid
        )
        asked = 0
        for row in rows.order_by("-pk")[:10]:
            observed = _read(work.connection, resource, _name_of(row))
            if observed is None or not _is_ours(observed, row):
                continue
            asked += 1
            if observed.metadata.deletion_timestamp is None:
                work.guard()
                try:
                    client.delete_custom(work.connection, resource, observed)
                except (client.Absent, client.Conflict):
                    continue
                except (client.Refused, client.Forbidden) as refusal:
                    return failed(f"The API server refused to delete the {KIND}: {refusal} {RIGHT}")
        if asked:
            return wait("The request is deleted. NVSentinel gives the node back.", asked=True)
        return _returned(work)


def _returned(work: NodeWork) -> StepResult:
    """Returns whether NVSentinel has given the node back, as the API server shows the node."""
    node = client.get_node(work.connection, work.node.node_name)
    if node.uid != work.node.node_uid:
        return failed(f"{work.node.node_name} is now a different node with the same name.")
    if not work.node.progress.get("asked"):
        return failed(f"Quarterdeck has no {KIND} for this node. Another one is for its owner to delete.")
    if SENTINEL_STATE in node.labels or SENTINEL_CORDON in node.labels:
        return wait("NVSentinel has not uncordoned the node yet.", asked=True)
    if node.is_unschedulable:
        whose = whose_cordon(node.cordoned_by, node.labels)
        return done_result(f"NVSentinel gave the node back. It is still cordoned{whose}.")
    return done_result("NVSentinel gave the node back. New pods may start here.")


def _progress(observed: CustomSeen, node: NodeSeen, *, request: str, now: datetime) -> StepResult:
    conditions = {each.type: each for each in observed.status.conditions or ()}
    emitted = conditions.get(EMITTED, Condition(EMITTED, "Unknown"))
    state = node.labels.get(SENTINEL_STATE, "")
    if emitted.status != "True":
        words = ": ".join(filter(None, (emitted.reason, emitted.message)))
        says = f"NVSentinel has not taken up {KIND} {request} yet" + (f": {words}" if words else ".")
        return wait(says, request=request)
    if state == "drain-failed":
        return failed("NVSentinel could not drain the node. Its request stays: End maintenance takes it back.")
    if node.is_unschedulable and state in DRAINED:
        return done_result(f"NVSentinel cordoned and drained the node (state {state}).", request=request)
    since = emitted.last_transition_time
    if not node.is_unschedulable and since is not None and now - since > CORDONED_WITHIN:
        why = "Its fault-quarantine may be off, or its rule for MaintenanceRequests is missing."
        return wait(f"NVSentinel took up the request and has not cordoned the node for 2 min. {why}", request=request)
    how = f"state {state}" if state else "no state yet"
    return wait(f"NVSentinel cordons and drains by its own settings ({how}).", request=request)


def _manifest(work: NodeWork, name: str) -> dict[str, Any]:
    event = {
        "version": 1,
        "agent": "quarterdeck",
        "componentClass": "Node",
        "checkName": "QuarterdeckMaintenance",
        "nodeName": work.node.node_name,
        "isHealthy": False,
        "isFatal": False,
        "recommendedAction": "NONE",
        "message": f"{work.operation.asked_by}: {work.operation.reason}"[:LONGEST_MESSAGE],
    }
    metadata = {"name": name, "labels": {MANAGED_BY: OURS}, "annotations": {MAINTENANCE_OF: _owner(work.node)}}
    return {"metadata": metadata, "spec": {"healthEvent": event}}


def _resource(connection: client.Connection) -> Resource[CustomSeen] | None:
    """Returns the kind as the cluster serves it: its group has moved between releases (R15)."""
    return client.find_kinds(connection, {KIND: GROUP_SUFFIX}).get(KIND)


def _read(connection: client.Connection, resource: Resource[CustomSeen], name: str) -> CustomSeen | None:
    try:
        return client.get_custom(connection, resource, name)
    except client.Absent:
        return None


def _name_of(row: OperationNode) -> str:
    return f"quarterdeck-operation-{row.operation_id}-{row.pk}"


def _owner(row: OperationNode) -> str:
    return f"operation-{row.operation_id}/{row.node_uid}"


def _is_ours(observed: CustomSeen, row: OperationNode) -> bool:
    return observed.annotations.get(MAINTENANCE_OF) == _owner(row)
