"""The Ready condition of a node, as its kubelet or, in its absence, the node lifecycle controller writes it."""

from simulator.actors.objects import condition
from simulator.actors.world import World
from simulator.clock import stamp
from simulator.kinds import NODE

Readiness = tuple[str, str, str]  # status, reason, message
WELL: Readiness = ("True", "KubeletReady", "kubelet is posting ready status")
GONE: Readiness = ("Unknown", "NodeStatusUnknown", "Kubelet stopped posting node status.")


def say(world: World, node_name: str, readiness: Readiness) -> None:
    node = world[NODE].get(node_name)
    value, reason, message = readiness
    if node is None or condition(node, "Ready").get("status") == value:
        return
    at = stamp(world.loop.clock.now())
    ready = {"type": "Ready", "status": value, "reason": reason, "message": message}
    ready |= {"lastHeartbeatTime": at, "lastTransitionTime": at}
    world.patch(NODE, node, {"status": {"conditions": [ready]}}, how="strategic", subresource="status")
