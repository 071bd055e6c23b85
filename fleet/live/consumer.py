"""The WebSocket of a page: authorizes topics, sends current sequence numbers, then relays messages."""

import asyncio
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import msgspec
import structlog
from channels.db import database_sync_to_async
from channels.generic.websocket import AsyncJsonWebsocketConsumer
from django.http import QueryDict

from fleet.live import guard, heart
from fleet.live.outbox import Outbox
from fleet.live.topics import OpenedTopic, Topic, pulse_of
from people.models import User
from people.sign_in.access import Access

# The observer announces a cluster every 150 ms at most; pages that follow many clusters need a limit. A longer wait
# here would double the delay.
FRAMES_EVERY_S = 0.1
ENCODER = msgspec.json.Encoder()
SEND_S = 20.0  # a browser that accepts nothing for so long is disconnected
CLOSE_S = 2.0  # a server closes only after the browser accepted earlier data
MOST_TOPICS = 20
SIGNED_OUT, NOT_YOURS, TRY_AGAIN = 4401, 4404, 1012

log = structlog.get_logger(__name__)


class LiveConsumer(AsyncJsonWebsocketConsumer):
    """The WebSocket at `/live/?topics=fleet,cluster-1,plan-7`."""

    topics: Sequence[Topic] = ()  # set by `config.routing`; this app does not know the others' topics

    def __init__(self, *, topics: Sequence[Topic] = ()) -> None:
        super().__init__()
        self.topics = topics
        self.opened: list[OpenedTopic] = []
        self.outbox = Outbox()
        self.has_news = asyncio.Event()
        self.sender: asyncio.Task | None = None
        self.is_listening = False
        self.access: Access | None = None

    async def connect(self) -> None:
        await self.accept()
        user = self.scope["user"]
        if not isinstance(user, User) or not user.is_active:
            await self.close(SIGNED_OUT)
            return
        # Access is recorded first, so that later revocations are noticed.
        self.access = await database_sync_to_async(Access.of)(user, self.scope.get("session"))
        self.opened = await database_sync_to_async(self._open)(user)
        if not self.opened:
            await self.close(NOT_YOURS)
            return
        try:
            await self._begin()
        except BaseException:  # `disconnect` is not called then
            await self.disconnect(TRY_AGAIN)
            raise

    async def _begin(self) -> None:
        if not await self._join():
            await self.close(TRY_AGAIN)
            return
        # After joining: later changes are in these numbers or in a message.
        pulse = await database_sync_to_async(pulse_of)(self.topics)
        await self.send_json({"type": "hello", **self._mine(pulse)})
        self.last_seen_at = time.monotonic()
        self.sender = asyncio.create_task(self._send())
        guard.guard().admit(self)

    async def turn_out(self, reason: str) -> None:
        """Ends the connection for `guard`, with the reason for the page."""
        if self.sender is not None:
            self.sender.cancel()
        await self._end(SIGNED_OUT, reason)

    async def disconnect(self, code: int) -> None:
        if self.sender is not None:
            self.sender.cancel()
        await self._leave()

    async def _end(self, code: int, reason: str | None = None) -> None:
        """Ends our side first, so that an unresponsive browser blocks nothing."""
        await self._leave()
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_S):
                await self.close(code, reason=reason)

    async def _leave(self) -> None:
        guard.guard().leave(self)
        if self.is_listening:
            self.is_listening = False
            heart.heart().leave()
        groups, self.opened = self._groups(), []
        for group in groups:
            try:
                await asyncio.wait_for(self.channel_layer.group_discard(group, self.channel_name), heart.SEND_S)
            except Exception as error:  # noqa: BLE001 - the layer is unreachable
                log.info("a group could not be left", group=group, reason=f"{type(error).__name__}: {error}")
                return

    async def joined(self, message: dict[str, Any]) -> None:
        """Receives its own test message, which proves that Redis works."""

    async def cluster_changed(self, message: dict[str, Any]) -> None:
        """Relays a message of `fleet.messages.announce`."""
        key = f"cluster-{message['cluster']}"
        if not any(key in opened.keys for opened in self.opened):
            return
        told = {**message, "topic": key}
        if not self._sees_nodes(message["cluster"], key):
            told |= {"nodes": [], "all": True}
        self._post(key, told)

    async def topic_changed(self, message: dict[str, Any]) -> None:
        """Relays a message of an app above. Its numbers may have gaps, so pages fetch on each."""
        if any(key in opened.keys for key in message["keys"] for opened in self.opened):
            self._post(message["topic"], message)

    async def heartbeat(self, message: dict[str, Any]) -> None:
        self.last_seen_at = time.monotonic()
        self.outbox.replace("heartbeat", self._mine(message))
        self.has_news.set()

    def _post(self, key: str, message: dict[str, Any]) -> None:
        self.outbox.put(key, message)
        self.has_news.set()

    async def _send(self) -> None:
        """Sends at most ten frames per second and key; closes when the layer delivers nothing any more."""
        while True:
            try:
                timeout_s = self.last_seen_at + heart.MISSED * heart.EVERY_S + 1 - time.monotonic()
                async with asyncio.timeout(max(0.01, timeout_s)):  # `wait_for` would create a task per wait
                    await self.has_news.wait()
                self.has_news.clear()
                async with asyncio.timeout(SEND_S):
                    for message in self.outbox.take():
                        await self.send_json(message)
            except TimeoutError:
                await self._end(TRY_AGAIN)
                return
            await asyncio.sleep(FRAMES_EVERY_S)

    @classmethod
    async def encode_json(cls, content: dict[str, Any]) -> str:
        return ENCODER.encode(content).decode()

    def _open(self, user: User) -> list[OpenedTopic]:
        """Opens all requested topics, or none."""
        names = QueryDict(self.scope["query_string"]).get("topics", "").split(",")
        if not 0 < len(names) <= MOST_TOPICS:
            return []
        found = [next(filter(None, (topic.open(user, name) for topic in self.topics)), None) for name in names]
        return [] if None in found else [opened for opened in found if opened is not None]

    async def _join(self) -> bool:
        try:
            for group in self._groups():
                await asyncio.wait_for(self.channel_layer.group_add(group, self.channel_name), heart.SEND_S)
            # Joining does not wait for an answer, and so would succeed while Redis hangs.
            await asyncio.wait_for(self.channel_layer.send(self.channel_name, {"type": "joined"}), heart.SEND_S)
        except Exception as error:  # noqa: BLE001 - without the layer nothing can be relayed; the page tries again
            log.warning("a browser cannot be served", reason=f"{type(error).__name__}: {error}")
            return False
        heart.heart().listen(partial(pulse_of, self.topics))
        self.is_listening = True
        return True

    def _groups(self) -> list[str]:
        if not self.opened:
            return []
        return [*dict.fromkeys(group for opened in self.opened for group in opened.groups), heart.heart().group]

    def _sees_nodes(self, cluster_id: int, key: str) -> bool:
        """Tells whether the user sees all nodes of a cluster; with a pool only, the page fetches changes."""
        there = (opened.nodes_of for opened in self.opened if key in opened.keys)
        return any(nodes_of is None or cluster_id in nodes_of for nodes_of in there)

    def _mine(self, pulse: dict[str, Any]) -> dict[str, Any]:
        """Returns the part of a pulse that this socket may know."""
        keys = frozenset[str]().union(*(opened.keys for opened in self.opened))
        mine = {
            name: {key: value for key, value in pulse[name].items() if key in keys} for name in ("seq", "last_seen")
        }
        return {**pulse, **mine}
