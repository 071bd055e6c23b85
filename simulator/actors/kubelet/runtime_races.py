"""Nodes that come back from a boot with their kubelet before their container runtime, while the fault is on."""

from uuid import uuid4

from simulator.actors.kubelet.devices import Holdings
from simulator.actors.kubelet.readiness import WELL, Readiness, say
from simulator.actors.kubelet.reboot import NO_DEVICES
from simulator.actors.kubelet.sandbox import rejected
from simulator.actors.world import World
from simulator.faults import Board, RuntimeRace
from simulator.kinds import NODE, POD

DOWN: Readiness = (
    "False",
    "KubeletNotReady",
    "[container runtime status check may not have completed yet, PLEG is not healthy: pleg has yet to be successful]",
)


class RuntimeRaces:
    def __init__(self, world: World, holdings: Holdings, faults: Board) -> None:
        self._world = world
        self._holdings = holdings
        self._faults = faults
        self._begun: set[RuntimeRace] = set()
        faults.on_change(lambda: world.loop.post(self.look))
        world.loop.soon(self.look)

    def look(self) -> None:
        active = set(self._faults.active(RuntimeRace))
        ended, fresh, self._begun = self._begun - active, active - self._begun, active
        for fault in ended:
            self._world.loop.soon(say, self._world, fault.node, WELL)
        for fault in fresh:
            self._world.loop.soon(self._boot, fault)
            self._world.loop.later(fault.seconds, self._come_up, fault)

    def _boot(self, fault: RuntimeRace) -> None:
        node = self._world[NODE].get(fault.node)
        if node is None:
            return
        boot_id = str(uuid4())
        self._world.patch_status(NODE, node, {"nodeInfo": {"bootID": boot_id}})
        words = f"Node {fault.node} has been rebooted, boot id: {boot_id}"
        self._world.events.warning(node, "Node", "Rebooted", words, source="kubelet")
        say(self._world, fault.node, DOWN)
        now = self._world.loop.clock.now()
        for pod_uid in self._holdings.on(fault.node):
            pod = self._world[POD].of_uid(pod_uid)
            if pod is not None:
                words = NO_DEVICES + "which is unexpected"
                self._world.patch_status(POD, pod, rejected(pod, "UnexpectedAdmissionError", words, now))

    def _come_up(self, fault: RuntimeRace) -> None:
        if fault in self._begun:
            say(self._world, fault.node, WELL)
