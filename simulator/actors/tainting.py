"""Taints that somebody gives a node while the fault is on; NoExecute ends the pods that do not tolerate them."""

from simulator.actors.fits import tolerates
from simulator.actors.objects import Obj, is_terminating, name, namespace, spec
from simulator.actors.world import World
from simulator.faults import Board, TaintedNode
from simulator.kinds import NODE, POD

SOURCE = "taint-eviction-controller"


class Tainting:
    def __init__(self, world: World, faults: Board) -> None:
        self._world = world
        self._faults = faults
        self._given: set[TaintedNode] = set()
        faults.on_change(lambda: world.loop.post(self.look))
        world.loop.soon(self.look)

    def look(self) -> None:
        active = set(self._faults.active(TaintedNode))
        ended, self._given = self._given - active, active
        for fault in ended:
            self._world.loop.soon(self.lift, fault)
        for fault in active:
            self._world.loop.soon(self.give, fault)

    def give(self, fault: TaintedNode) -> None:
        node = self._world[NODE].get(fault.node)
        taint = _taint(fault)
        if node is None or taint in (spec(node).get("taints") or []):
            return
        self._write(node, [*(spec(node).get("taints") or []), taint])
        if fault.effect == "NoExecute":
            for pod in self._world[POD].by("node", fault.node):
                self._end(pod, taint)

    def lift(self, fault: TaintedNode) -> None:
        node = self._world[NODE].get(fault.node)
        if node is not None:
            self._write(node, [taint for taint in spec(node).get("taints") or [] if taint != _taint(fault)])

    def _end(self, pod: Obj, taint: Obj) -> None:
        if is_terminating(pod) or any(tolerates(each, taint) for each in spec(pod).get("tolerations") or []):
            return
        words = f"Marking for deletion Pod {namespace(pod)}/{name(pod)}"
        self._world.events.normal(pod, "Pod", "TaintManagerEviction", words, source=SOURCE)
        self._world.delete(POD, pod)

    def _write(self, node: Obj, taints: list[Obj]) -> None:
        """The whole list, so only over the node as it was read."""
        version = {"resourceVersion": node["metadata"]["resourceVersion"]}
        self._world.patch(NODE, node, {"metadata": version, "spec": {"taints": taints or None}})


def _taint(fault: TaintedNode) -> Obj:
    return {"key": fault.taint, "value": fault.value, "effect": fault.effect}
