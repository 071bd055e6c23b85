"""Announcements of changes to browsers. Besides `live`, the only module that uses the channel layer.

Messages have sequence numbers: a page that misses one fetches again, so messages may be dropped.
"""

import asyncio
import threading
import time
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from channels.layers import get_channel_layer
from redis.exceptions import ConnectionError as RedisConnectionError

from edges.background import Background

SEND_S = 5.0
# With a hanging channel layer, each message takes SEND_S per group. Without a limit, TOO_MANY_WAITING old messages
# would precede the first new one. A page without connection asks every ten seconds (`live.js`).
OLD_S = 10.0
TOO_MANY_WAITING = 500
TOO_MANY_NODES = 2000  # above it, fetching is cheaper for a page

Message = dict[str, Any]


def fleet_group() -> str:
    return "fleet"


def cluster_group(cluster_id: int) -> str:
    return f"cluster-{cluster_id}"


def cluster_changed(
    cluster_id: int,
    *,
    seq: int,
    nodes: Iterable[tuple[int, int] | tuple[int, int, str]],
    kinds: Iterable[str],
    at: datetime,
    prev: int | None = None,
    is_laid_out_anew: bool = False,
) -> None:
    """Announces changed nodes of a cluster, with state codes and cells, and changed kinds.

    `prev` is the number before this flush's `seq`. None: not from a flush, and `seq` is the newest.
    `is_laid_out_anew` means that nodes were added, removed or moved on the map.
    """
    message: Message = {
        "type": "cluster.changed",
        "cluster": cluster_id,
        "seq": seq,
        "prev": seq if prev is None else prev,
        "kinds": sorted(kinds),
        "at": at.isoformat(),
    }
    if is_laid_out_anew:
        message["index"] = True
    rows = [list(row) for row in nodes]
    message |= {"all": True, "nodes": []} if len(rows) > TOO_MANY_NODES else {"nodes": rows}
    send((cluster_group(cluster_id), fleet_group()), message)


def send(groups: Iterable[str], message: Message) -> None:
    """Queues a message; never fails and never waits for the channel layer."""
    told, since = tuple(groups), time.monotonic()
    _announcements.send(lambda: _loop().run_until_complete(_send(told, message, since)), groups=told)


async def _send(groups: tuple[str, ...], message: Message, since: float) -> None:
    if time.monotonic() - since > OLD_S:
        return
    for group in groups:
        await _send_one(group, message)


async def _send_one(group: str, message: Message) -> None:
    layer = get_channel_layer()
    if layer is None:
        return
    try:
        await asyncio.wait_for(layer.group_send(group, message), SEND_S)
    except TimeoutError:
        raise  # also an OSError; a hanging layer would hang again
    except (OSError, RedisConnectionError):
        # The first send after Redis returned uses the old connection; the second does not.
        await asyncio.wait_for(layer.group_send(group, message), SEND_S)


def _loop() -> asyncio.AbstractEventLoop:
    """Returns the sending thread's own loop: `async_to_sync` would create a loop and a connection per call."""
    if not hasattr(_thread, "loop"):
        _thread.loop = asyncio.new_event_loop()
    return _thread.loop


_thread = threading.local()
_announcements = Background("announcements", most_waiting=TOO_MANY_WAITING)
