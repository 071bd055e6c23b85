"""Everyday life at any rate: tenants' pods are deleted and made anew elsewhere, labels of nodes change."""

import random
from itertools import count

from simulator.actors.gpu_operator.keys import NAMESPACE
from simulator.actors.objects import Obj, controller, is_active, name, namespace
from simulator.actors.world import World
from simulator.kinds import NODE, POD

LABEL = "example.com/shift"
LOOKS = 20  # nodes looked at for a tenant before this turn is given up


class Churn:
    """Like heartbeats, it keeps the wall's time."""

    def __init__(self, world: World, seed: int = 1) -> None:
        self.per_s = 0.0
        self._world = world
        self._random = random.Random(seed)
        self._turns = count()
        self._names: list[str] = []
        self._is_turning = False

    def ask(self, per_s: float) -> None:
        """Changes a second from now on; 0 ends it. From any thread."""
        self._world.loop.post(self._set, per_s)

    def _set(self, per_s: float) -> None:
        self.per_s = per_s
        self._names = [name(node) for node in self._world[NODE].all()]
        if not self._is_turning:
            self._turn()

    def _turn(self) -> None:
        self._is_turning = self.per_s > 0 and bool(self._names)
        if not self._is_turning:
            return
        self._world.loop.later(self._world.loop.clock.speed / self.per_s, self._turn)
        turn = next(self._turns)
        if turn % 2:
            self._relabel(turn)
        else:
            self._replace()

    def _relabel(self, turn: int) -> None:
        node = self._world[NODE].get(self._random.choice(self._names))
        if node is not None:
            self._world.patch(NODE, node, {"metadata": {"labels": {LABEL: str(turn)}}})

    def _replace(self) -> None:
        """Its owner makes another."""
        for _ in range(LOOKS):
            here = self._world[POD].by("node", self._random.choice(self._names))
            if tenants := [pod for pod in here if _is_tenant(pod)]:
                self._world.delete(POD, self._random.choice(tenants))
                return


def _is_tenant(pod: Obj) -> bool:
    owner = controller(pod)
    is_made_anew = owner is not None and owner["kind"] == "ReplicaSet"
    return is_made_anew and is_active(pod) and namespace(pod) != NAMESPACE
