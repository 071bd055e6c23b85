"""A broken operand shows when it starts: what runs of it is replaced once the fault is on."""

from simulator.actors.gpu_operator.node.ailing import operand_of, strikes
from simulator.actors.kubelet.host import Host
from simulator.actors.objects import Obj, is_terminating, node_of
from simulator.actors.world import World
from simulator.faults import Board, BrokenOperand
from simulator.kinds import POD


class Ailments:
    def __init__(self, world: World, hosts: dict[str, Host], faults: Board) -> None:
        self._world = world
        self._hosts = hosts
        self._faults = faults
        self._known: set[BrokenOperand] = set()
        faults.on_change(lambda: world.loop.post(self.look))
        world.loop.soon(self.look)

    def look(self) -> None:
        active = set(self._faults.active(BrokenOperand))
        fresh, self._known = active - self._known, active
        if fresh:
            for pod in list(self._world[POD].all()):
                self._replace(pod, fresh)

    def _replace(self, pod: Obj, fresh: set[BrokenOperand]) -> None:
        host = self._hosts.get(node_of(pod))
        if host is None or not operand_of(pod) or is_terminating(pod):
            return
        striking = [fault for fault in fresh if strikes(fault, pod, host)]
        if any(fault.needs_reboot for fault in striking) and not host.has_own_driver:
            host.unload()
        if striking:
            self._world.delete(POD, pod)
