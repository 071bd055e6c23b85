"""Tell browsers that something changed. With `live`, the only module that touches the channel layer.

One event loop in one thread a process sends everything: `async_to_sync` would make a loop and a connection a call. What
cannot be sent is dropped: messages carry sequence numbers, and a page that misses one fetches again.
"""

import asyncio
import os
import threading
from collections.abc import Iterable
from datetime import datetime
from typing import Any

import structlog
from channels.layers import get_channel_layer
from redis.exceptions import ConnectionError as RedisConnectionError

SEND_S = 5.0
TOO_MANY_WAITING = 500
TOO_MANY_NODES = 2000  # past that, a page is better off fetching

log = structlog.get_logger(__name__)
Message = dict[str, Any]


def fleet_group() -> str:
    return "fleet"


def cluster_group(cluster_id: int) -> str:
    return f"cluster-{cluster_id}"


def cluster_changed(
    cluster_id: int,
    *,
    seq: int,
    nodes: Iterable[tuple[int, int]],
    kinds: Iterable[str],
    at: datetime,
) -> None:
    """One flush of a cluster: which nodes changed, each with its state code, and which kinds."""
    message: Message = {
        "type": "cluster.changed",
        "cluster": cluster_id,
        "seq": seq,
        "kinds": sorted(kinds),
        "at": at.isoformat(),
    }
    pairs = [list(pair) for pair in nodes]
    message |= {"all": True, "nodes": []} if len(pairs) > TOO_MANY_NODES else {"nodes": pairs}
    send((cluster_group(cluster_id), fleet_group()), message)


def send(groups: Iterable[str], message: Message) -> None:
    """Hand a message over, at once; it never fails and never waits for the channel layer."""
    _sender().send(tuple(groups), message)


class _Sender:
    """The process's own event loop, in a thread."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self._waiting = 0
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, name="announcements", daemon=True).start()

    def send(self, groups: tuple[str, ...], message: Message) -> None:
        if self._waiting >= TOO_MANY_WAITING:
            log.warning("an announcement is dropped", groups=groups, because="too many wait already")
            return
        self._waiting += 1
        asyncio.run_coroutine_threadsafe(self._send(groups, message), self._loop)

    async def _send(self, groups: tuple[str, ...], message: Message) -> None:
        try:
            for group in groups:
                await self._send_one(group, message)
        except Exception as error:  # noqa: BLE001 - whatever a layer raises, nobody waits for this to say so
            log.warning("an announcement is lost", groups=groups, because=f"{type(error).__name__}: {error}")
        finally:
            self._waiting -= 1

    async def _send_one(self, group: str, message: Message) -> None:
        layer = get_channel_layer()
        if layer is None:
            return
        try:
            await asyncio.wait_for(layer.group_send(group, message), SEND_S)
        except (OSError, RedisConnectionError):
            # The first send after Redis came back meets the old connection; the second does not.
            await asyncio.wait_for(layer.group_send(group, message), SEND_S)


_lock = threading.Lock()
_current: _Sender | None = None


def _sender() -> _Sender:
    """Made on first use, and again in a process that was forked since: threads do not survive a fork."""
    global _current
    with _lock:
        if _current is None or _current.pid != os.getpid():
            _current = _Sender()
        return _current
