"""Budgets that let nobody go: while the fault is on, the GPU pods of one node cannot be evicted."""

from simulator.actors.objects import Obj, annotations, controller, is_active, labels, namespace, uid
from simulator.actors.world import World
from simulator.faults import Board, StuckDrain
from simulator.kinds import DISRUPTION_BUDGET, POD
from simulator.quantities import wants_gpu
from simulator.selectors import from_label_selector

BEFORE = "faults.example.com/max-unavailable-before"
MADE = "faults.example.com/stuck-drain"


class StuckDrains:
    """An existing budget is tightened, so that no pod falls under two; a missing one is made."""

    def __init__(self, world: World, faults: Board) -> None:
        self._world = world
        self._faults = faults
        faults.on_change(lambda: world.loop.post(self.look))
        world[POD].on_change(self._pod_changed)
        world.loop.soon(self.look)

    def look(self) -> None:
        stuck = {fault.node for fault in self._faults.active(StuckDrain)}
        held: set[str] = set()
        for node_name in stuck:
            for pod in self._world[POD].by("node", node_name):
                if wants_gpu(pod) and is_active(pod):
                    held.add(uid(self._tightened(pod)))
        for budget in list(self._world[DISRUPTION_BUDGET].all()):
            if uid(budget) not in held:
                self._loosen(budget)

    def _tightened(self, pod: Obj) -> Obj:
        budget = self._budget_of(pod)
        if budget is None:
            return self._world.create(DISRUPTION_BUDGET, _budget_for(pod), namespace(pod))
        was = budget["spec"].get("maxUnavailable")
        if was in (0, None):
            return budget
        patch = {"metadata": {"annotations": {BEFORE: str(was)}}, "spec": {"maxUnavailable": 0}}
        return self._world.patch(DISRUPTION_BUDGET, budget, patch)

    def _loosen(self, budget: Obj) -> None:
        if MADE in labels(budget):
            self._world.delete(DISRUPTION_BUDGET, budget)
        elif BEFORE in annotations(budget):
            was = annotations(budget)[BEFORE]
            allowed = int(was) if was.isdigit() else was
            patch = {"metadata": {"annotations": {BEFORE: None}}, "spec": {"maxUnavailable": allowed}}
            self._world.patch(DISRUPTION_BUDGET, budget, patch)

    def _budget_of(self, pod: Obj) -> Obj | None:
        for budget in self._world[DISRUPTION_BUDGET].all():
            selector = from_label_selector(budget["spec"].get("selector"))
            if namespace(budget) == namespace(pod) and selector and selector.matches(labels(pod)):
                return budget
        return None

    def _pod_changed(self, was: Obj | None, pod: Obj | None) -> None:
        is_new = pod is not None and (was is None or not was["spec"].get("nodeName"))
        if is_new and self._faults.active(StuckDrain):
            self._world.loop.soon(self.look)


def _budget_for(pod: Obj) -> Obj:
    owner = controller(pod)
    called = owner["name"] if owner else pod["metadata"]["name"]
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": f"stuck-{called}", "namespace": namespace(pod), "labels": {MADE: "true"}},
        "spec": {"maxUnavailable": 0, "selector": {"matchLabels": labels(pod)}},
    }
