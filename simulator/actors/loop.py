"""One thread plays the whole cluster: what is due now, and a heap of what is due later."""

import heapq
import itertools
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any

from simulator.clock import Clock
from simulator.refusals import Refused

log = logging.getLogger(__name__)

RETRY_S = 1.0
EVERYDAY = frozenset({404, 409, 429})
Call = Callable[..., None]


@dataclass(order=True)
class Timer:
    at: float
    turn: int
    call: Call = field(compare=False)
    args: tuple[Hashable, ...] = field(compare=False)
    is_off: bool = field(default=False, compare=False)

    def cancel(self) -> None:
        self.is_off = True


class Loop:
    """Calls are made one at a time. `post` is for other threads; everything else belongs to the loop's own."""

    def __init__(self, clock: Clock, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self._monotonic = monotonic
        self._ready: deque[tuple[Call, tuple[Hashable, ...]]] = deque()
        self._queued: set[tuple[Call, tuple[Hashable, ...]]] = set()
        self._posted: deque[tuple[Call, tuple[Any, ...]]] = deque()
        self._timers: list[Timer] = []
        self._turns = itertools.count()
        self._wake = threading.Event()
        self._is_stopping = False

    def soon(self, call: Call, *args: Hashable) -> None:
        """Asked for twice before its turn, a call is made once."""
        if (call, args) not in self._queued:
            self._queued.add((call, args))
            self._ready.append((call, args))

    def later(self, cluster_s: float, call: Call, *args: Hashable) -> Timer:
        at = self._monotonic() + self.clock.wall_s(cluster_s)
        timer = Timer(at, next(self._turns), call, args)
        heapq.heappush(self._timers, timer)
        return timer

    def post(self, call: Call, *args: Any) -> None:
        self._posted.append((call, args))
        self._wake.set()

    def run(self) -> None:
        while not self._is_stopping:
            self._wake.clear()
            if not self.turn():
                self._wake.wait(self.idle_s())

    def stop(self) -> None:
        self._is_stopping = True
        self._wake.set()

    def turn(self) -> bool:
        """Make every call that is due. False when there was none."""
        self._take_posted()
        self._take_timers()
        if not self._ready:
            return False
        for _ in range(len(self._ready)):
            call, args = self._ready.popleft()
            self._queued.discard((call, args))
            self._make(call, args)
        return True

    def idle_s(self) -> float | None:
        """How long nothing is due, as this machine's clock counts; None: until somebody posts."""
        if not self._timers:
            return None
        return max(0.0, self._timers[0].at - self._monotonic())

    def _take_posted(self) -> None:
        while self._posted:
            call, args = self._posted.popleft()
            self._make(call, args)

    def _take_timers(self) -> None:
        now = self._monotonic()
        while self._timers and self._timers[0].at <= now:
            timer = heapq.heappop(self._timers)
            if not timer.is_off:
                self.soon(timer.call, *timer.args)

    def _make(self, call: Call, args: tuple[Any, ...]) -> None:
        try:
            call(*args)
        except Refused as refusal:
            level = logging.DEBUG if refusal.status in EVERYDAY else logging.WARNING
            log.log(level, "%s%r was refused and is tried again: %s", call.__qualname__, args, refusal)
            self.later(RETRY_S, call, *args)
        except OSError as error:
            log.info("%s%r did not reach the server and is tried again: %s", call.__qualname__, args, error)
            self.later(RETRY_S, call, *args)
        except Exception:
            log.exception("%s%r", call.__qualname__, args)
