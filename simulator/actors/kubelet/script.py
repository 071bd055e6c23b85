"""A pod's life as a generator: it says what it waits for, the kubelet wakes it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from simulator.actors.loop import Loop, Timer


@dataclass(frozen=True, slots=True)
class Wait:
    cluster_s: float


@dataclass(frozen=True, slots=True)
class Until:
    """Asked again whenever something on the node changed."""

    is_true: Callable[[], bool]


Script = Iterator[Wait | Until]


class Player:
    def __init__(self, loop: Loop, script: Script) -> None:
        self._loop = loop
        self._script = script
        self._until: Until | None = None
        self._timer: Timer | None = None
        self.is_over = False

    def step(self) -> None:
        """Run on to the next thing to wait for."""
        self._timer = None
        while not self.is_over:
            wish = next(self._script, None)
            if wish is None:
                self.is_over = True
            elif isinstance(wish, Wait):
                self._timer = self._loop.later(wish.cluster_s, self.step)
                return
            elif not wish.is_true():
                self._until = wish
                return

    def nudge(self) -> None:
        if self._until and not self.is_over and self._until.is_true():
            self._until = None
            self.step()

    def stop(self) -> None:
        self.is_over = True
        if self._timer:
            self._timer.cancel()
