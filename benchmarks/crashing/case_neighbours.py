"""Who else acts on nodes in schedules with cases: NVSentinel, a remediator, and podgc where the power is off.

NVSentinel takes any uncordon in its session as a cancel by a person (operations/steps/cancel_breakfix.py).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks.crashing.case_actors import HOSTS
from benchmarks.crashing.line import Line
from benchmarks.crashing.nodes_seen import OUT_OF_SERVICE, OUT_OF_SERVICE_BY
from benchmarks.crashing.tenants import Tenants
from simulator.actors.objects import Obj, annotations, is_unschedulable, name, spec, status
from simulator.actors.repairers import SELF_NODE_REMEDIATION, remediation_definitions
from simulator.kinds import DEFINITION, NODE

EVENT, IS_CORDONED, PRE_EXISTING = (
    "quarantineHealthEvent", "quarantineHealthEventIsCordoned", "quarantineHealthEventCordonPreExisting",
)  # fmt: skip
BY_HAND = "quarantinedNodeUncordonedManually"
STATE = "dgxc.nvidia.com/nvsentinel-state"
SENTINEL, CONTROLLER = "fault-quarantine", "kube-controller-manager"


@dataclass
class Neighbours:
    line: Line
    tenants: Tenants

    def plant(self) -> None:
        for definition in remediation_definitions():
            self.line.store.create(DEFINITION, definition)

    def step(self) -> None:
        for node in self.line.store.list(NODE)[0]:
            if EVENT in annotations(node) and not is_unschedulable(node):
                ended = {EVENT: None, IS_CORDONED: None, PRE_EXISTING: None, BY_HAND: "True"}
                self.patch(SENTINEL, name(node), {"metadata": {"annotations": ended, "labels": {STATE: None}}})
            if has_no_service(node) and is_silent(node):
                self._end_pods(name(node))

    def patch(self, who: str, called: str, body: Obj) -> None:
        self.line.notify(who, "PATCH", f"/api/v1/nodes/{called}", body)

    def silence(self, called: str) -> None:
        """The kubelet of a node does not report any more."""
        unknown = {"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}
        body = {"status": {"conditions": [unknown]}}
        self.line.notify(CONTROLLER, "PATCH", f"/api/v1/nodes/{called}/status", body)

    def break_in(self, node: Obj) -> None:
        """NVSentinel begins a session on a node, or adds an event to its session. It leaves a cordon that was there."""
        events = json.loads(annotations(node).get(EVENT, "[]"))
        events.append({"checkName": "SysLogsXIDError", "errorCode": ["79"], "id": str(self.line.store.version)})
        marks = {EVENT: json.dumps(events), IS_CORDONED: "True", BY_HAND: None}
        if EVENT not in annotations(node) and is_unschedulable(node):
            marks[PRE_EXISTING] = "True"
        metadata = {"annotations": marks, "labels": {STATE: "draining"}}
        self.patch(SENTINEL, name(node), {"metadata": metadata, "spec": {"unschedulable": True}})

    def recover(self) -> None:
        """All faults are over: NVSentinel ends its sessions, and leaves the cordons that were there before."""
        for node in self.line.store.list(NODE)[0]:
            if EVENT in annotations(node):
                ended = {EVENT: None, IS_CORDONED: None, PRE_EXISTING: None}
                is_its = PRE_EXISTING not in annotations(node)
                body: Obj = {"metadata": {"annotations": ended, "labels": {STATE: None}}}
                self.patch(SENTINEL, name(node), body | ({"spec": {"unschedulable": None}} if is_its else {}))

    def remediate(self, called: str) -> None:
        """Self Node Remediation begins on a node."""
        if called not in {name(each) for each in self._remediations()}:
            self.line.store.create(SELF_NODE_REMEDIATION, {"metadata": {"name": called}}, HOSTS)

    def end_remediations(self) -> None:
        for each in self._remediations():
            self.line.store.delete(SELF_NODE_REMEDIATION, name(each), HOSTS, grace_s=0)

    def _remediations(self) -> list[Obj]:
        return list(self.line.store.list(SELF_NODE_REMEDIATION, HOSTS)[0])

    def _end_pods(self, called: str) -> None:
        """As podgc (gcTerminating) does on a node that is out of service and not Ready."""
        for pod in self.tenants.pods():
            if spec(pod)["nodeName"] == called:
                self.tenants.end(name(pod))

    def marked(self) -> Iterator[Obj]:
        """Yields the nodes with our mark of a node without power."""
        yield from (node for node in self.line.store.list(NODE)[0] if OUT_OF_SERVICE_BY in annotations(node))


def has_no_service(node: Obj) -> bool:
    return any(taint["key"] == OUT_OF_SERVICE for taint in spec(node).get("taints") or ())


def is_silent(node: Obj) -> bool:
    return any(each["type"] == "Ready" and each["status"] == "Unknown" for each in status(node)["conditions"])
