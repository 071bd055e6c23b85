"""Nodes whose kubelet comes and goes, while the fault is on."""

from simulator.actors.kubelet.heartbeat import Heartbeats
from simulator.actors.kubelet.readiness import GONE, WELL, say
from simulator.actors.world import World
from simulator.faults import Board, FlappingNode


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
        say(self._world, fault.node, GONE)
        self._world.loop.later(fault.unready_s, self._rise, fault)

    def _rise(self, fault: FlappingNode) -> None:
        self._heartbeats.silence(fault.node, is_silent=False)
        say(self._world, fault.node, WELL)
        self._world.loop.later(fault.ready_s, self._fall, fault)
