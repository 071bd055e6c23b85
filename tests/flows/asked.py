"""What was asked of the API server, and what may become of it on its way."""

import asyncio
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from tests.patience import PATIENCE_S


@dataclass
class Asked:
    """One request of Quarterdeck's. Those that never reached the API server have no answer of its own."""

    n: int
    method: str
    path: str
    query: dict[str, str]
    body: Any
    at: datetime  # when it was asked
    answered_at: datetime | None = None
    code: int = 0  # 0: nobody has answered
    is_forwarded: bool = False

    @property
    def is_write(self) -> bool:
        """Neither a dry run, of which nothing is kept, nor the question what one may do."""
        is_question = self.path.endswith("/selfsubjectaccessreviews") or self.query.get("dryRun") == "All"
        return self.method != "GET" and not is_question

    @property
    def is_watch(self) -> bool:
        return self.query.get("watch") in {"1", "true"}

    @property
    def is_list(self) -> bool:
        return self.method == "GET" and "limit" in self.query

    def of(self, method: str, path: str) -> bool:
        return self.method == method and self.path == path


Matches = Callable[[Asked], bool]


@dataclass
class Rule:
    """What becomes of requests that match, instead of being passed on."""

    matches: Matches
    times: int | None = None  # None: until it is taken off
    code: int = 0  # answer this, with the body
    body: bytes = b""
    delay_s: float = 0.0
    hold: "Held | None" = None

    def takes(self, asked: Asked) -> bool:
        if self.times == 0 or not self.matches(asked):
            return False
        if self.times is not None:
            self.times -= 1
        return True


@dataclass
class Held:
    """One request that is kept on its way, before the API server sees it or after it has answered."""

    is_answer: bool
    loop: asyncio.AbstractEventLoop
    asked: Asked | None = None
    _caught: threading.Event = field(default_factory=threading.Event)
    _free: asyncio.Event = field(default_factory=asyncio.Event)

    def wait(self, timeout_s: float = PATIENCE_S) -> Asked:
        """Return the request, once it is there."""
        assert self._caught.wait(timeout_s), "nothing came that was to be held"
        assert self.asked
        return self.asked

    def let_go(self) -> None:
        self.loop.call_soon_threadsafe(self._free.set)

    async def keep(self, asked: Asked) -> None:
        self.asked = asked
        self._caught.set()
        await self._free.wait()
