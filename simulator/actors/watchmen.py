"""Programs that watch nodes and write what they find as conditions: NVSentinel, node-problem-detector and the like."""

from simulator.actors.objects import Obj, condition
from simulator.actors.world import World
from simulator.clock import stamp
from simulator.faults import Board, NodeCondition
from simulator.kinds import NODE

NO_FAILURES = "No Health Failures"


class Watchmen:
    def __init__(self, world: World, faults: Board) -> None:
        self._world = world
        self._faults = faults
        self._told: set[NodeCondition] = set()
        faults.on_change(lambda: world.loop.post(self.look))
        world.loop.soon(self.look)

    def look(self) -> None:
        active = set(self._faults.active(NodeCondition))
        ended, self._told = self._told - active, active
        for fault in ended:
            self._world.loop.soon(self._tell, fault, "False")
        for fault in active:
            self._world.loop.soon(self._tell, fault, "True")

    def _tell(self, fault: NodeCondition, value: str) -> None:
        """What is well again is told as such; the condition stays."""
        node = self._world[NODE].get(fault.node)
        if node is None or condition(node, fault.type).get("status") == value:
            return
        told = _written(fault, value) | dict.fromkeys(("lastHeartbeatTime", "lastTransitionTime"), self._now())
        self._world.patch(NODE, node, {"status": {"conditions": [told]}}, how="strategic", subresource="status")

    def _now(self) -> str:
        return stamp(self._world.loop.clock.now())


def _written(fault: NodeCondition, value: str) -> Obj:
    """NVIDIA/NVSentinel, platform-connectors: the check's name with IsNotHealthy, IsHealthy."""
    if value == "True":
        message = fault.message or "ErrorCode:DCGM_FR_UNKNOWN GPU:0 Recommended Action=CONTACT_SUPPORT;"
        reason = fault.reason or f"{fault.type}IsNotHealthy"
    else:
        reason, message = f"{fault.type}IsHealthy", NO_FAILURES
    return {"type": fault.type, "status": value, "reason": reason, "message": message}
