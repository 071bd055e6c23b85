"""The listening end: one port, that can vanish for a while and come back."""

import asyncio
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from simulator.faults.api_gone import ApiGone
from simulator.faults.board import Board
from simulator.faults.gone_410 import Gone410
from simulator.store import Store
from simulator.wire.certificate_files import Certificate
from simulator.wire.closing import Closing

BACKLOG = 1024
GRACE_S = 1


def bound(host: str, port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    # As Go's servers do. Connections inherit it; the event loop sets it only on sockets that it has made itself, and
    # without it each answer waits 40 ms for the client's acknowledgement of its own headers.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    listener.bind((host, port))
    return listener


class Server(uvicorn.Server):
    def __init__(
        self, app: Any, listener: socket.socket, *, closing: Closing, certificate: Certificate | None = None
    ) -> None:
        super().__init__(
            Config(
                app,
                log_config=None,
                log_level="warning",
                access_log=False,
                lifespan="off",
                loop="uvloop",
                http=HttpToolsProtocol,
                ws="none",
                # Clients keep connections in pools; one closed under them would look like a fault.
                timeout_keep_alive=600,
                timeout_graceful_shutdown=GRACE_S,
                ssl_certfile=certificate.path if certificate else None,
                ssl_keyfile=certificate.key_path if certificate else None,
            )
        )
        self._listener = listener
        self._address = listener.getsockname()
        self._closing = closing
        self.ready = asyncio.Event()

    async def run_until_stopped(self) -> None:
        await self.serve(sockets=[self._listener])

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Signals are the process's to answer: uvicorn would die of them again after an orderly end."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.ready.set()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._closing.announce()
        await super().shutdown(sockets)

    async def vanish(self, seconds: float) -> None:
        """Refuse and drop every connection, then listen again on the same port."""
        await self.ready.wait()
        for server in self.servers:
            server.close()
        self._listener.close()
        for connection in list(self.server_state.connections):
            connection.transport.abort()
        await asyncio.sleep(seconds)
        if self.should_exit:
            return
        self._listener = bound(*self._address)
        loop = asyncio.get_running_loop()
        self.servers = [
            await loop.create_server(self._protocol, sock=self._listener, backlog=BACKLOG, ssl=self.config.ssl)
        ]

    def _protocol(self) -> HttpToolsProtocol:
        return HttpToolsProtocol(config=self.config, server_state=self.server_state, app_state={})


class Striker:
    """Faults that are not about one request."""

    def __init__(self, board: Board, store: Store, server: Server) -> None:
        self._board = board
        self._store = store
        self._server = server
        self._tasks: set[asyncio.Task[None]] = set()

    def listener(self) -> Callable[[], None]:
        loop = asyncio.get_running_loop()

        def tell() -> None:
            loop.call_soon_threadsafe(self._strike)

        return tell

    def _strike(self) -> None:
        for fault in self._board.active(Gone410):
            self._store.expire()
            self._board.clear(fault.key)
        for gone in self._board.active(ApiGone):
            self._board.clear(gone.key)
            task = asyncio.get_running_loop().create_task(self._server.vanish(gone.seconds))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
