"""NVSentinel's lifecycle-manager, with what it makes its other parts do: cordon, drain and uncordon of one node.

A MaintenanceRequest takes its node out of service, and its deletion gives it back. Pods leave by evictions alone, and
are waited for without end. Whoever uncordons the node cancels all of that (fault-quarantine, handleManualUncordon).
"""

import json

from simulator.actors.janitor import write_conditions
from simulator.actors.kubelet.script import Player, Script, Wait
from simulator.actors.objects import Obj, annotations, is_terminating, is_unschedulable, name, namespace, owners, uid
from simulator.actors.repairers import MAINTENANCE_REQUEST
from simulator.actors.world import World
from simulator.faults import Board, Breakfix
from simulator.kinds import NODE, POD
from simulator.refusals import Refused

FINALIZER = "nvsentinel.dgxc.nvidia.com/maintenance-request"
STATE, CORDON = "dgxc.nvidia.com/nvsentinel-state", "k8saas.nvidia.com/cordon-by"
EVENT, IS_CORDONED = "quarantineHealthEvent", "quarantineHealthEventIsCordoned"  # annotations of a session
SESSION = (EVENT, IS_CORDONED, "quarantineHealthEventCordonPreExisting", "quarantineHealthEventAppliedTaints")
CANCELLED = "quarantinedNodeUncordonedManually"
AGAIN_S = 5.0  # cluster time


class LifecycleManager:
    def __init__(self, world: World, faults: Board) -> None:
        self._world, self._faults = world, faults
        self._begun: set[str] = set()
        self._taken: set[Breakfix] = set()
        faults.on_change(lambda: world.loop.post(self._look_at_faults))
        world.loop.soon(self._look_at_faults)
        world[MAINTENANCE_REQUEST].on_change(lambda _was, asked: self._take(asked))
        world[NODE].on_change(lambda _was, node: self._look(node))

    def _look(self, node: Obj | None) -> None:
        """Takes an uncordon of a node of its own as the cancel of its session. The label of its cordon stays."""
        if node is not None and IS_CORDONED in annotations(node) and not is_unschedulable(node):
            self._world.loop.soon(self._cancel, name(node))

    def _look_at_faults(self) -> None:
        active = set(self._faults.active(Breakfix))
        ended, new, self._taken = self._taken - active, active - self._taken, active
        for fault in new:
            self._world.loop.soon(self._quarantine, fault)
        for fault in ended:
            self._world.loop.soon(self._recover, fault)

    def _quarantine(self, fault: Breakfix) -> None:
        self._mark(fault.node, "draining", _event_of(fault))

    def _recover(self, fault: Breakfix) -> None:
        """Ends the session, unless somebody has cancelled it: then its cordon is not NVSentinel's any more."""
        if not self._is_cancelled(fault.node):
            self._mark(fault.node, None, None)

    def _cancel(self, called: str) -> None:
        node = self._world[NODE].get(called)
        if node is not None and IS_CORDONED in annotations(node) and not is_unschedulable(node):
            ended = {**dict.fromkeys(SESSION), CANCELLED: "True"}
            self._world.patch(NODE, node, {"metadata": {"labels": {STATE: None}, "annotations": ended}})

    def _take(self, asked: Obj | None) -> None:
        if asked is None:
            return
        script = self._give_back if is_terminating(asked) else self._prepare
        if (step := f"{script.__name__} {uid(asked)}") not in self._begun:
            self._begun.add(step)
            self._world.loop.soon(lambda: Player(self._world.loop, script(name(asked))).step())

    def _prepare(self, asked: str) -> Script:
        request = self._world[MAINTENANCE_REQUEST].get(asked)
        if request is None:
            return
        event = request["spec"]["healthEvent"]
        node = event["nodeName"]
        self._world.patch(MAINTENANCE_REQUEST, request, {"metadata": {"finalizers": [FINALIZER]}})
        emitted = ("True", "Emitted", "The health event was published")
        write_conditions(self._world, MAINTENANCE_REQUEST, asked, HealthEventEmitted=emitted)
        self._mark(node, "draining", event)
        while pods := self._tenants(node):
            for pod in pods:
                try:
                    self._world.cluster.evict(name(pod), namespace(pod), uid=uid(pod))
                except Refused as refusal:
                    if refusal.status not in (404, 409, 429):
                        raise
            yield Wait(AGAIN_S)
            if not self._is_asked(asked) or self._is_cancelled(node):
                return
        self._mark(node, "drain-succeeded", event)

    def _give_back(self, asked: str) -> Script:
        yield Wait(1.0)
        request = self._world[MAINTENANCE_REQUEST].get(asked)
        if request is not None:
            self._mark(request["spec"]["healthEvent"]["nodeName"], None, None)
            self._world.patch(MAINTENANCE_REQUEST, request, {"metadata": {"finalizers": None}})

    def _is_asked(self, asked: str) -> bool:
        request = self._world[MAINTENANCE_REQUEST].get(asked)
        return request is not None and not is_terminating(request)

    def _is_cancelled(self, node: str) -> bool:
        there = self._world[NODE].get(node)
        return there is None or EVENT not in annotations(there)

    def _tenants(self, node: str) -> list[Obj]:
        """Returns the pods on the node that are neither of a DaemonSet nor static."""
        kinds = ("DaemonSet", "Node")
        pods = self._world[POD].by("node", node)
        return [pod for pod in pods if not any(owner["kind"] in kinds for owner in owners(pod))]

    def _mark(self, node: str, state: str | None, event: Obj | None) -> None:
        """Writes the marks of a session for its event. None: ends it."""
        there = self._world[NODE].get(node)
        if there is not None:
            labels = {STATE: state, CORDON: "NVSentinel" if event else None}
            session = {EVENT: json.dumps([event]), IS_CORDONED: "True"} if event else dict.fromkeys(SESSION)
            metadata = {"labels": labels, "annotations": session}
            change = {"metadata": metadata, "spec": {"unschedulable": event is not None or None}}
            self._world.patch(NODE, there, change)


def _event_of(fault: Breakfix) -> Obj:
    return {
        "agent": "syslog-health-monitor", "checkName": "SysLogsXIDError", "errorCode": [str(fault.xid)],
        "isFatal": True, "nodeName": fault.node,
    }  # fmt: skip
