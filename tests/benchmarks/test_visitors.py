"""What the visitors say became of them, before a server that treats some of them badly."""

import asyncio
from collections.abc import AsyncIterator
from http import HTTPStatus

import pytest
from websockets.asyncio.server import ServerConnection, serve
from websockets.http11 import Request, Response

from benchmarks.loading.visitors import Load, Outcome, visit


class Host:
    """Throws the second socket out, and answers a page only when it is gone."""

    def __init__(self) -> None:
        self.sockets = 0
        self.is_out = asyncio.Event()

    async def greet(self, socket: ServerConnection) -> None:
        self.sockets += 1
        is_second = self.sockets == 2
        await socket.send("{}")
        if is_second:
            await socket.close(1011)
            self.is_out.set()
        await socket.wait_closed()

    async def answer(self, connection: ServerConnection, request: Request) -> Response | None:
        if request.path.startswith("/live/"):
            return None
        await self.is_out.wait()
        status = HTTPStatus.INTERNAL_SERVER_ERROR if request.path == "/broken" else HTTPStatus.OK
        return connection.respond(status, "")


@pytest.fixture
async def url() -> AsyncIterator[str]:
    host = Host()
    async with serve(host.greet, "127.0.0.1", 0, process_request=host.answer) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


async def test_a_socket_that_is_closed_and_an_error_are_counted(url: str):
    load = Load(url, "sessionid=x", ["/page", "/broken"], sockets=3, clients=2, requests=3)

    became = await visit(load)

    assert became == Outcome(answers=6, errors=3, closed_sockets=1, first_error="/broken: 500")


async def test_where_nobody_lets_them_in_all_are_counted(unused_tcp_port: int):
    load = Load(f"http://127.0.0.1:{unused_tcp_port}", "", ["/page"], sockets=2, clients=1, requests=2)

    became = await visit(load)

    assert (became.answers, became.errors, became.closed_sockets) == (2, 2, 2)
    assert "ConnectError" in became.first_error
