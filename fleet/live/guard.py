"""Disconnects users who lost access: signed out, switched off, password changed, role removed.

A socket is authorized once and would outlive its rights. One check every two seconds covers all sockets of a process
with three queries.
"""

import asyncio
from typing import Protocol
from weakref import WeakKeyDictionary

import structlog
from channels.db import database_sync_to_async
from django.utils import timezone

from people.sign_in.access import Access, lapsed

EVERY_S = 2.0  # so that a change takes effect within five seconds

log = structlog.get_logger(__name__)


class Socket(Protocol):
    access: Access | None

    async def turn_out(self, reason: str) -> None: ...


class Guard:
    """The guard of one event loop; active while sockets exist."""

    def __init__(self) -> None:
        self._sockets: set[Socket] = set()
        self._leaving: set[asyncio.Task] = set()
        self._task: asyncio.Task | None = None

    def admit(self, socket: Socket) -> None:
        self._sockets.add(socket)
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._watch())

    def leave(self, socket: Socket) -> None:
        self._sockets.discard(socket)
        if not self._sockets and self._task is not None:
            self._task.cancel()
            self._task = None

    async def _watch(self) -> None:
        while self._sockets:
            await asyncio.sleep(EVERY_S)
            try:
                await self._check_access()
            except Exception as error:  # noqa: BLE001 - a database that is away also ends the heartbeat, and that the sockets
                log.warning("rights of sockets are unknown", reason=f"{type(error).__name__}: {error}")

    async def _check_access(self) -> None:
        accesses = {socket.access for socket in self._sockets if socket.access is not None}
        gone = await database_sync_to_async(lapsed)(accesses, now=timezone.now())
        for socket in [socket for socket in self._sockets if socket.access in gone]:
            self._sockets.discard(socket)
            # Not awaited: one unresponsive browser must not keep others connected.
            task = asyncio.get_running_loop().create_task(_turn_out(socket, gone[socket.access]))
            self._leaving.add(task)
            task.add_done_callback(self._leaving.discard)


async def _turn_out(socket: Socket, reason: str) -> None:
    try:
        await socket.turn_out(reason)
    except Exception as error:  # noqa: BLE001 - it was closed already
        log.info("a socket could not receive the reason of its end", reason=f"{type(error).__name__}: {error}")


_guards: WeakKeyDictionary[asyncio.AbstractEventLoop, Guard] = WeakKeyDictionary()


def guard() -> Guard:
    return _guards.setdefault(asyncio.get_running_loop(), Guard())
