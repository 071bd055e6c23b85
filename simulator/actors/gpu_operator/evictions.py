"""Evicts pods from one node and waits until they are gone: kubectl's drain as the operator's goroutines run it."""

from collections.abc import Callable

from simulator.actors.gpu_operator.policy import Eviction
from simulator.actors.kubelet.script import Player, Script, Wait
from simulator.actors.objects import Obj, name, namespace, uid
from simulator.actors.world import World
from simulator.kinds import POD
from simulator.refusals import Refused

RETRY_S = 5
LOOK_S = 1


class Evictions:
    """One at a time for each node; whoever asks again meanwhile is not heard."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._busy: set[str] = set()

    def is_busy(self, node_name: str) -> bool:
        return node_name in self._busy

    def start(self, node_name: str, pods: list[Obj], rules: Eviction, tell: Callable[[str], None]) -> None:
        """`tell` hears once how it ended: an empty string, or what went wrong."""
        self._busy.add(node_name)
        Player(self._world.loop, self._run(node_name, pods, rules, tell)).step()

    def _run(self, node_name: str, pods: list[Obj], rules: Eviction, tell: Callable[[str], None]) -> Script:
        began = self._world.loop.clock.now()
        left = {uid(pod): pod for pod in pods}
        asked: set[str] = set()
        error, retry_in = "", 0.0
        while left and not error:
            if retry_in <= 0:
                error = self._ask(left, asked)
                retry_in = RETRY_S
            left = {key: pod for key, pod in left.items() if self._world[POD].of_uid(key) is not None}
            elapsed = (self._world.loop.clock.now() - began).total_seconds()
            if left and not error and 0 < self._world.loop.clock.wall_s(rules.timeout_s) <= elapsed:
                error = f"global timeout reached: {rules.timeout_s}s"
            if left and not error:
                yield Wait(LOOK_S)
                retry_in -= LOOK_S
        self._busy.discard(node_name)
        self._world.loop.soon(tell, error)

    def _ask(self, left: dict[str, Obj], asked: set[str]) -> str:
        """Evict what was not accepted yet. 429 is asked again later, 404 is gone, other refusals end the drain."""
        for key, pod in left.items():
            if key in asked:
                continue
            try:
                self._world.cluster.evict(name(pod), namespace(pod))
            except Refused as refusal:
                if refusal.status == 429:
                    continue
                if refusal.status != 404:
                    return f'error when evicting pods/"{name(pod)}" -n "{namespace(pod)}": {refusal.message}'
            except OSError:
                continue
            asked.add(key)
        return ""
