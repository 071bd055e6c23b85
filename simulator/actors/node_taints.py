"""The node lifecycle controller's part: a cordon and an unready kubelet show as taints."""

from simulator.actors.objects import Obj, is_true, is_unschedulable, name, spec
from simulator.actors.world import World
from simulator.clock import stamp
from simulator.kinds import NODE

UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
NOT_READY = "node.kubernetes.io/not-ready"


class NodeTaints:
    def __init__(self, world: World) -> None:
        self._world = world
        world[NODE].on_change(self._node_changed)

    def sync(self, node_name: str) -> None:
        node = self._world[NODE].get(node_name)
        if node is None:
            return
        has = spec(node).get("taints") or []
        wanted = {UNSCHEDULABLE: is_unschedulable(node), NOT_READY: not is_true(node, "Ready")}
        kept = [taint for taint in has if wanted.get(taint["key"], True)]
        missing = [key for key, is_due in wanted.items() if is_due and all(taint["key"] != key for taint in has)]
        at = stamp(self._world.loop.clock.now())
        taints = [*kept, *({"key": key, "effect": "NoSchedule", "timeAdded": at} for key in missing)]
        if taints != has:
            # The whole list is written, so only over the node as it was read.
            version = node["metadata"]["resourceVersion"]
            patch = {"metadata": {"resourceVersion": version}, "spec": {"taints": taints or None}}
            self._world.patch(NODE, node, patch)

    def _node_changed(self, was: Obj | None, node: Obj | None) -> None:
        if node and (was is None or _cause(was) != _cause(node)):
            self._world.loop.soon(self.sync, name(node))


def _cause(node: Obj) -> tuple[object, ...]:
    return (is_unschedulable(node), is_true(node, "Ready"), spec(node).get("taints"))
