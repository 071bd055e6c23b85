"""Maintenance by NVSentinel: a MaintenanceRequest takes a node out of service, and its deletion releases the node.

NVSentinel cordons and drains by its own settings, and uncordons. NVIDIA/NVSentinel, its tutorial on node maintenance
and docs/configuration/lifecycle-manager, read 2026-11-30; lifecycle R15 and R16.
"""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any, ClassVar

from django.db import IntegrityError, transaction

from edges.transition_errors import LostRace
from fleet.models import Node
from fleet.observer.mirror.rows.pod import pod_row
from gpu.cordons import is_in_breakfix, whose_cordon
from gpu.labels import MAINTENANCE_OF, MANAGED_BY, OURS, SENTINEL_CORDON, SENTINEL_MARKS, SENTINEL_STATE
from kube import client
from kube.resources import Resource
from kube.structs import CustomSeen, NodeSeen
from kube.structs.meta import Condition
from operations.models import MaintenanceRequest, Operation
from operations.restraints import RELEASE_VETOES, release_vetoes, stop_reason
from operations.steps.base import NodeStep, NodeWork, StepResult, done_result, failed, wait
from operations.stop_switch import stopped_by_switch
from wording.numbers import count

KIND, GROUP_SUFFIX = "MaintenanceRequest", "nvidia.com"
EMITTED = "HealthEventEmitted"  # condition: NVSentinel took up the request
LONGEST_MESSAGE = 1000
CORDONED_WITHIN = timedelta(minutes=2)  # lifecycle R16
DRAINED = frozenset({"drain-succeeded", "remediating", "remediation-succeeded", "remediation-failed"})
NOT_SERVED = f"The cluster serves no {KIND}. Enable the lifecycle-manager of NVSentinel, or drain the node yourself."
RIGHT = "An admin may apply deploy/rbac/quarterdeck.yaml."


class StartMaintenanceStep(NodeStep):
    key: ClassVar[str] = "start_maintenance"
    effect: ClassVar[str] = "NVSentinel cordons and drains them."
    evicts: ClassVar[bool] = True
    needs_place: ClassVar[bool] = True
    waits_for_freeze: ClassVar[bool] = True

    def why_not_offered(self, nodes: Sequence[Node]) -> dict[str, str]:
        found = {}
        for node in nodes:
            if is_in_breakfix(node.annotations, is_unschedulable=node.is_unschedulable):
                found[node.uid] = "NVSentinel works there for an event."
            elif not any(label.startswith(SENTINEL_MARKS) for label in node.labels):
                found[node.uid] = "NVSentinel is not on the node."
        return found

    def warnings(self, nodes: Sequence[Node]) -> Iterable[str]:
        yield "NVSentinel drains by its own settings: it may wait without end, or delete pods past their budgets."

    def run(self, work: NodeWork) -> StepResult:
        try:
            resource = _resource(work.connection)
            if resource is None:
                return failed(NOT_SERVED)
            return self._ask_and_follow(work, resource)
        except client.Forbidden as refusal:
            return failed(f"{refusal} {RIGHT}")

    def left_behind(self) -> Sequence[int]:
        return list(MaintenanceRequest.objects.cancelled().values_list("operation", flat=True).distinct())

    def clean_up(self, operation: Operation, connection: client.Connection, *, clock: Callable[[], datetime]) -> None:
        """Takes back the requests of cancelled nodes: NVSentinel stops its drain and uncordons.

        That releases the node, so a stop and whatever else forbids a release hold it back.
        """
        for row in MaintenanceRequest.objects.cancelled().filter(operation=operation):
            held_back = (
                stop_reason(now=clock())
                or stopped_by_switch(operation.cluster, connection)
                or release_vetoes([row.node_uid]).get(row.node_uid, "")
            )
            try:
                trouble = held_back or _delete(row, connection, guard=lambda: None, now=clock())
            except (client.Forbidden, client.Refused) as refusal:
                trouble = f"{refusal} {RIGHT}"
            if trouble != row.trouble:
                row.note(trouble=trouble[:500])

    def _ask_and_follow(self, work: NodeWork, resource: Resource[CustomSeen]) -> StepResult:
        node = work.read_node()
        row = MaintenanceRequest.objects.of_node(node.uid) or _intend(work, node)
        if row.operation_id != work.operation.pk:
            return failed(f"Operation {row.operation_id} has already requested it from NVSentinel.")
        observed = _read(work.connection, resource, row)
        if observed is None and row.seen_at is not None:
            row.end(now=work.clock())
            return failed(f"Somebody deleted {KIND} {row}: NVSentinel releases the node.")
        if observed is None:
            work.guard()
            try:
                observed = client.create_custom(work.connection, resource, _manifest(work, row))
            except client.Conflict:  # another worker was faster, or somebody took the name: read it again
                return wait(f"{KIND} {row} exists by now.")
            except (client.Refused, client.Forbidden) as refusal:
                row.end(now=work.clock())
                return failed(f"The API server refused the {KIND}: {refusal} {RIGHT}")
        if not _is_ours(observed, row):
            row.end(now=work.clock())
            return failed(f"{KIND} {row} has another owner.")
        if row.seen_at is None:
            row.note(seen_at=work.clock())
        if observed.metadata.deletion_timestamp is not None:
            return wait(f"{KIND} {row} is being deleted: NVSentinel releases the node.")
        return _progress(work, row, observed, node)


class EndMaintenanceStep(NodeStep):
    key: ClassVar[str] = "end_maintenance"
    effect: ClassVar[str] = "NVSentinel uncordons them."
    vetoes = RELEASE_VETOES
    minds_owner: ClassVar[bool] = False  # NVSentinel is the owner

    def run(self, work: NodeWork) -> StepResult:
        row = MaintenanceRequest.objects.of_node(work.node.node_uid)
        if row is not None:
            row.note(ended_by=work.operation)
            try:
                trouble = _delete(row, work.connection, guard=work.guard, now=work.clock())
            except (client.Forbidden, client.Refused) as refusal:
                return failed(f"The {KIND} is not deleted: {refusal} {RIGHT}")
            return wait(trouble) if trouble else _returned(work)
        ended = MaintenanceRequest.objects.filter(ended_by=work.operation, node_uid=work.node.node_uid)
        if not ended.exists():
            return failed(f"Quarterdeck has no {KIND} for this node. Another one is for its owner to delete.")
        return _returned(work)


def _intend(work: NodeWork, node: NodeSeen) -> MaintenanceRequest:
    """Records that the object may be in the cluster from this commit on.

    :raises LostRace: when the guard forbids it, or another request was recorded first
    """
    try:
        with transaction.atomic():
            work.guard()
            return MaintenanceRequest.objects.create(
                cluster_id=work.operation.cluster_id, operation=work.operation, node_uid=node.uid,
                node_name=work.node.node_name, state_before=node.labels.get(SENTINEL_STATE, ""),
                intended_at=work.clock(),
            )  # fmt: skip
    except IntegrityError as clash:
        raise LostRace(f"{work.node.node_name} has a {KIND} already.") from clash


def _delete(row: MaintenanceRequest, connection: client.Connection, *, guard: Callable[[], None], now: datetime) -> str:
    """Deletes the object of the row, and ends the row once it is gone. Returns why it is not gone yet.

    :raises Forbidden: when Quarterdeck may not
    :raises Refused: when a webhook refuses it
    """
    resource = _resource(connection)
    if resource is None:
        return f"The cluster serves no {KIND} now."
    observed = _read(connection, resource, row)
    if observed is None or not _is_ours(observed, row):
        if row.is_gone_when_absent(now=now):
            row.end(now=now)
            return ""
        return f"The {KIND} was sent and is not seen yet."
    if observed.metadata.deletion_timestamp is None:
        row.note(seen_at=row.seen_at or now)
        guard()
        try:
            client.delete_custom(connection, resource, observed)
        except (client.Absent, client.Conflict):
            return f"The {KIND} is read again."
    return f"The {KIND} is being deleted. NVSentinel releases the node."


def _returned(work: NodeWork) -> StepResult:
    """Returns whether NVSentinel has given the node back, as the API server shows the node."""
    node = work.read_node()
    # Its labels of the cordon stay after an uncordon by hand (NVIDIA/NVSentinel #1872), so they hold nothing up.
    if SENTINEL_STATE in node.labels or (SENTINEL_CORDON in node.labels and node.is_unschedulable):
        return wait("NVSentinel has not uncordoned the node yet.")
    if node.is_unschedulable:
        whose = whose_cordon(node.cordoned_by, node.labels)
        return done_result(f"NVSentinel gave the node back. It is still cordoned{whose}.")
    if SENTINEL_CORDON in node.labels:
        return done_result("The node is uncordoned. NVSentinel's cordon labels are left behind.")
    return done_result("NVSentinel gave the node back. New pods may start here.")


def _progress(work: NodeWork, row: MaintenanceRequest, observed: CustomSeen, node: NodeSeen) -> StepResult:
    conditions = {each.type: each for each in observed.status.conditions or ()}
    emitted = conditions.get(EMITTED, Condition(EMITTED, "Unknown"))
    state = node.labels.get(SENTINEL_STATE, "")
    since, now = emitted.last_transition_time, work.clock()
    is_late = since is not None and now - since > CORDONED_WITHIN
    if state == row.state_before and not is_late:
        state = ""  # of an earlier fault
    elif row.state_before:
        row.note(state_before="")
    if emitted.status != "True":
        words = ": ".join(filter(None, (emitted.reason, emitted.message)))
        return wait(f"NVSentinel has not taken up {KIND} {row} yet" + (f": {words}" if words else "."))
    if state == "drain-failed":
        return failed("NVSentinel could not drain the node. Its request stays: End maintenance takes it back.")
    if node.is_unschedulable and state in DRAINED:
        return done_result(f"NVSentinel cordoned and drained the node (state {state}).{_left(work)}")
    if not node.is_unschedulable and is_late:
        why = "Its fault-quarantine may be off, or its rule for MaintenanceRequests is missing."
        return wait(f"NVSentinel took up the request 2 min ago and has not cordoned the node. {why}")
    return wait(f"NVSentinel cordons and drains by its own settings ({f'state {state}' if state else 'no state yet'}).")


def _left(work: NodeWork) -> str:
    """Returns a sentence about the tenants' GPU pods that NVSentinel left on the node. Blank: it left none."""
    pods = client.list_pods_on(work.connection, work.node.node_name)
    left = sum(1 for pod in pods if pod_row(pod)["is_tenant"])
    return f" {count(left, 'GPU pod')} stayed: its settings leave them alone." if left else ""


def _manifest(work: NodeWork, row: MaintenanceRequest) -> dict[str, Any]:
    event = {
        "version": 1,
        "agent": "quarterdeck",
        "componentClass": "Node",
        "checkName": "QuarterdeckMaintenance",
        "nodeName": row.node_name,
        "isHealthy": False,
        "isFatal": False,
        "recommendedAction": "NONE",
        "message": f"{work.operation.asked_by}: {work.operation.reason}"[:LONGEST_MESSAGE],
    }
    metadata = {"name": row.object_name, "labels": {MANAGED_BY: OURS}, "annotations": {MAINTENANCE_OF: row.owner}}
    return {"metadata": metadata, "spec": {"healthEvent": event}}


def _resource(connection: client.Connection) -> Resource[CustomSeen] | None:
    """Returns the kind as the cluster serves it: its group has moved between releases (R15)."""
    return client.find_kinds(connection, {KIND: GROUP_SUFFIX}).get(KIND)


def _read(connection: client.Connection, resource: Resource[CustomSeen], row: MaintenanceRequest) -> CustomSeen | None:
    try:
        return client.get_custom(connection, resource, row.object_name)
    except client.Absent:
        return None


def _is_ours(observed: CustomSeen, row: MaintenanceRequest) -> bool:
    return observed.annotations.get(MAINTENANCE_OF) == row.owner
