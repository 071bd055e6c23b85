"""The heartbeat of this process's sockets. It passes through the channel layer, so an arriving beat proves the whole
path.

The layer's own hooks do not report a lost server (channels_redis 4.3), so a socket would stay open and silent
forever. The beat also carries the newest numbers, so a page notices a lost message within 5 s.
"""

import asyncio
from collections.abc import Callable
from typing import Any
from uuid import uuid4
from weakref import WeakKeyDictionary

import structlog
from channels.db import database_sync_to_async
from channels.layers import get_channel_layer

EVERY_S = 5.0
MISSED = 3
SEND_S = 4.0

log = structlog.get_logger(__name__)
Pulse = dict[str, Any]


class Heart:
    """The heartbeat of one event loop; active while sockets listen."""

    def __init__(self) -> None:
        self.group = f"heart-{uuid4().hex[:12]}"
        self._listeners = 0
        self._task: asyncio.Task | None = None

    def listen(self, look: Callable[[], Pulse]) -> None:
        self._listeners += 1
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._beat(look))

    def leave(self) -> None:
        self._listeners -= 1
        if self._listeners <= 0 and self._task is not None:
            self._task.cancel()
            self._task = None

    async def _beat(self, look: Callable[[], Pulse]) -> None:
        while True:
            await asyncio.sleep(EVERY_S)
            await self._beat_once(look)

    async def _beat_once(self, look: Callable[[], Pulse]) -> None:
        layer = get_channel_layer()
        if layer is None:
            return
        try:
            pulse = await database_sync_to_async(look)()
            await asyncio.wait_for(layer.group_send(self.group, {"type": "heartbeat", **pulse}), SEND_S)
        except Exception as error:  # noqa: BLE001 - the missing beat reports a lost database or layer
            log.warning("a heartbeat is lost", reason=f"{type(error).__name__}: {error}")


_hearts: WeakKeyDictionary[asyncio.AbstractEventLoop, Heart] = WeakKeyDictionary()


def heart() -> Heart:
    return _hearts.setdefault(asyncio.get_running_loop(), Heart())
