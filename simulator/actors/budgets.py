"""The status of disruption budgets, on API servers without a disruption controller."""

from simulator.actors.objects import Key, Obj, controller, key, labels, namespace
from simulator.actors.world import World
from simulator.disruption import counted
from simulator.kinds import DISRUPTION_BUDGET, JOB, POD, REPLICA_SET
from simulator.selectors import from_label_selector

DESIRED = {"ReplicaSet": (REPLICA_SET, "replicas"), "Job": (JOB, "parallelism")}


class Budgets:
    def __init__(self, world: World) -> None:
        self._world = world
        world[POD].index("namespace", namespace)
        world[DISRUPTION_BUDGET].index("namespace", namespace)
        world[DISRUPTION_BUDGET].on_change(lambda _was, budget: self._soon(budget))
        world[POD].on_change(lambda was, pod: self._soon(pod or was))

    def judge(self, where: str) -> None:
        for budget in self._world[DISRUPTION_BUDGET].by("namespace", where):
            self._judge(key(budget))

    def _judge(self, at: Key) -> None:
        budget = self._world[DISRUPTION_BUDGET].objects[at]
        selector = from_label_selector(budget["spec"].get("selector"))
        pods = self._world[POD].by("namespace", namespace(budget))
        covered = [pod for pod in pods if selector and selector.matches(labels(pod))]
        status = counted(budget, covered, self._expected(covered), self._world.loop.clock.now())
        if status != budget.get("status"):
            # A merge patch leaves out what is gone only when told so.
            gone = dict.fromkeys((budget.get("status") or {}).get("disruptedPods") or {})
            status["disruptedPods"] = {**gone, **status.get("disruptedPods", {})}
            self._world.patch_status(DISRUPTION_BUDGET, budget, status)

    def _expected(self, pods: list[Obj]) -> int:
        owners = {owner["uid"]: (owner, pod) for pod in pods if (owner := controller(pod))}
        alone = sum(controller(pod) is None for pod in pods)
        return alone + sum(self._wanted(owner, pod) for owner, pod in owners.values())

    def _wanted(self, owner: Obj, pod: Obj) -> int:
        if owner["kind"] not in DESIRED:
            return 1
        kind, field = DESIRED[owner["kind"]]
        held = self._world[kind].get(owner["name"], namespace(pod))
        return int(held["spec"].get(field, 1)) if held else 1

    def _soon(self, obj: Obj | None) -> None:
        if obj:
            self._world.loop.soon(self.judge, namespace(obj))
