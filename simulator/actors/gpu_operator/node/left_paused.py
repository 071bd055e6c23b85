"""Labels of a pause that nobody ended, while the fault is on."""

from simulator.actors.apps import GATES
from simulator.actors.gpu_operator.keys import DEPLOY
from simulator.actors.gpu_operator.node.pausing import paused, resumed
from simulator.actors.objects import labels
from simulator.actors.world import World
from simulator.faults import Board, LeftPaused
from simulator.kinds import NODE


class PausesLeftBehind:
    def __init__(self, world: World, faults: Board) -> None:
        self._world = world
        self._faults = faults
        self._left: set[LeftPaused] = set()
        faults.on_change(lambda: world.loop.post(self.look))
        world.loop.soon(self.look)

    def look(self) -> None:
        active = set(self._faults.active(LeftPaused))
        ended, fresh, self._left = self._left - active, active - self._left, active
        for fault in ended:
            self._world.loop.soon(self._end, fault)
        for fault in fresh:
            self._world.loop.soon(self._leave, fault)

    def _leave(self, fault: LeftPaused) -> None:
        self._write(fault, is_paused=True)

    def _end(self, fault: LeftPaused) -> None:
        self._write(fault, is_paused=False)

    def _write(self, fault: LeftPaused, *, is_paused: bool) -> None:
        node = self._world[NODE].get(fault.node)
        if node is None:
            return
        keys = {DEPLOY + fault.operand} if fault.operand else set(GATES.values())
        held = {key: labels(node)[key] for key in keys if key in labels(node)}
        wanted = {key: paused(value) if is_paused else resumed(value) for key, value in held.items()}
        if changed := {key: value for key, value in wanted.items() if value != held[key]}:
            self._world.patch(NODE, node, {"metadata": {"labels": changed}})
