"""Which faults sit in which machine's GPUs, and since when."""

from collections import defaultdict
from collections.abc import Callable, Iterable

from simulator.faults.board import Board
from simulator.faults.strain import OnGpu

Since = tuple[OnGpu, float]


class Sickness:
    """Told of every change in the thread that makes it; asked in the one that serves."""

    def __init__(
        self, board: Board, now_s: Callable[[], float], before_change: Callable[[Iterable[str]], None]
    ) -> None:
        """`before_change`: told the nodes whose faults begin or end, while what was so far still holds."""
        self._board = board
        self._now_s = now_s
        self._before_change = before_change
        self._of: dict[str, tuple[Since, ...]] = {}
        board.on_change(self._look)
        self._look()

    def on(self, node_name: str) -> tuple[Since, ...]:
        return self._of.get(node_name, ())

    def _look(self) -> None:
        was = {fault: since for sinces in self._of.values() for fault, since in sinces}
        active = self._board.active(OnGpu)
        changed = {fault.node for fault in set(active) ^ was.keys()}
        if not changed:
            return
        self._before_change(changed)
        now_s = self._now_s()
        of: dict[str, list[Since]] = defaultdict(list)
        for fault in active:
            of[fault.node].append((fault, was.get(fault, now_s)))
        self._of = {node: tuple(sinces) for node, sinces in of.items()}
