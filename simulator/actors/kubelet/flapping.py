"""Nodes whose kubelet comes and goes, while the fault is on."""

from simulator.actors.kubelet.heartbeat import Heartbeats
from simulator.actors.objects import condition
from simulator.actors.world import World
from simulator.clock import stamp
from simulator.faults import Board, FlappingNode
from simulator.kinds import NODE

WELL = ("True", "KubeletReady", "kubelet is posting ready status")
GONE = ("Unknown", "NodeStatusUnknown", "Kubelet stopped posting node status.")


class Flapping:
    def __init__(self, world: World, heartbeats: Heartbeats, faults: Board) -> None:
        self._world = world
        self._heartbeats = heartbeats
        self._faults = faults
        self._flapping: set[str] = set()
        faults.on_change(lambda: world.loop.post(self.look))
        world.loop.soon(self.look)

    def look(self) -> None:
        for fault in self._faults.active(FlappingNode):
            if fault.node not in self._flapping:
                self._flapping.add(fault.node)
                self._fall(fault)

    def _fall(self, fault: FlappingNode) -> None:
        if fault not in self._faults.active(FlappingNode):
            self._flapping.discard(fault.node)
            return
        self._heartbeats.silence(fault.node, is_silent=True)
        self._write(fault.node, *GONE)
        self._world.loop.later(fault.unready_s, self._rise, fault)

    def _rise(self, fault: FlappingNode) -> None:
        self._heartbeats.silence(fault.node, is_silent=False)
        self._write(fault.node, *WELL)
        self._world.loop.later(fault.ready_s, self._fall, fault)

    def _write(self, node_name: str, value: str, reason: str, message: str) -> None:
        node = self._world[NODE].get(node_name)
        if node is None or condition(node, "Ready").get("status") == value:
            return
        at = stamp(self._world.loop.clock.now())
        ready = {
            "type": "Ready",
            "status": value,
            "reason": reason,
            "message": message,
            "lastHeartbeatTime": at,
            "lastTransitionTime": at,
        }
        patch = {"status": {"conditions": [ready]}}
        self._world.patch(NODE, node, patch, how="strategic", subresource="status")
