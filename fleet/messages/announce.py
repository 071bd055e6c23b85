"""Tell browsers that something changed. With `live`, the only module that touches the channel layer.

Messages carry sequence numbers: a page that misses one fetches again, so that what cannot be sent may be dropped.
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
# Behind a channel layer that hangs, each message takes SEND_S for a group: without an end to it, up to TOO_MANY_WAITING
# old ones would go out before the first new one. A page without its link asks again every ten seconds (`live.js`).
OLD_S = 10.0
TOO_MANY_WAITING = 500
TOO_MANY_NODES = 2000  # past that, a page is better off fetching

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
    """What changed of a cluster: which nodes, each with its state code and cells, and which kinds.

    `prev`: the number that was told before a flush's own, `seq`. None: it is of no flush, and `seq` is the newest.
    `is_laid_out_anew`: nodes came, went, or are another's on the map.
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
    """Hand a message over, at once; it never fails and never waits for the channel layer."""
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
        raise  # an OSError, too; but a layer that hangs hangs the second time as well
    except (OSError, RedisConnectionError):
        # The first send after Redis came back meets the old connection; the second does not.
        await asyncio.wait_for(layer.group_send(group, message), SEND_S)


def _loop() -> asyncio.AbstractEventLoop:
    """The sending thread's own: `async_to_sync` would make a loop and a connection a call."""
    if not hasattr(_thread, "loop"):
        _thread.loop = asyncio.new_event_loop()
    return _thread.loop


_thread = threading.local()
_announcements = Background("announcements", most_waiting=TOO_MANY_WAITING)
