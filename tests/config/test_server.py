"""A request that is too long is answered, and its connection ends. Over real sockets, with the options of a start."""

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress

import pytest
import uvicorn

from config.server import LONGEST_TARGET
from tests.patience import PATIENCE_S
from tests.rooms import ROOT

OPTIONS = {"http": "config.server:BoundedHttp", "ws": "config.server:AnsweredWebSocket"}
HANDSHAKE = (
    "Upgrade: websocket\r\nConnection: Upgrade\r\n"
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
)


async def application(scope, receive, send) -> None:
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.accept"})
        await send({"type": "websocket.close"})
        return
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
    await send({"type": "http.response.body", "body": b""})


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        config = uvicorn.Config(application, lifespan="off", log_level="critical", **OPTIONS)
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        yield listener.getsockname()[1]
        server.should_exit = True
        thread.join(PATIENCE_S)


def status(port: int, sent: str) -> int:
    """Of the answer. It fails where the connection stays open after it."""
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S) as connection:
        connection.sendall(sent.encode())
        answer = b""
        with suppress(ConnectionResetError):  # after the answer: it hangs up on what it has not read
            while piece := connection.recv(65536):
                answer += piece
    return int(answer.split(b" ", 2)[1])


def a_request(target: str, *, headers: str = "Connection: close\r\n") -> str:
    return f"GET {target} HTTP/1.1\r\nHost: quarterdeck\r\n{headers}\r\n"


@pytest.mark.parametrize("headers", [HANDSHAKE, "Connection: close\r\n"], ids=["websocket", "http"])
@pytest.mark.parametrize("length", [8_193, 20_000, 70_000])
def test_a_long_request_line_is_answered_with_414(port, headers, length):
    assert status(port, a_request(f"/live/?topics={'a' * length}", headers=headers)) == 414


@pytest.mark.nightly
@pytest.mark.parametrize(("headers", "answer"), [(HANDSHAKE, 101), ("Connection: close\r\n", 200)])
def test_the_longest_that_a_server_has_to_take_is_taken(port, headers, answer):
    assert status(port, a_request("/".ljust(LONGEST_TARGET, "a"), headers=headers)) == answer


def test_a_request_line_that_does_not_end_is_answered_before_it_does(port):
    assert status(port, "GET /" + "a" * 2 * LONGEST_TARGET) == 414


@pytest.mark.parametrize(
    "more", [f"Cookie: {'a' * 9_000}\r\n", "A: b\r\n" * 200], ids=["a long header", "many headers"]
)
def test_a_handshake_with_too_large_headers_is_answered_with_431(port, more):
    assert status(port, a_request("/live/", headers=HANDSHAKE + more)) == 431


def test_what_is_no_request_is_answered_as_before(port):
    assert status(port, "\x01\x02\r\n\r\n") == 400


def test_each_start_of_the_web_process_has_the_options():
    command = (ROOT / "deploy" / "Dockerfile").read_text().rpartition("\nCMD ")[2]
    options = [word for name, value in OPTIONS.items() for word in (f"--{name}", value)]
    given = json.loads(command)

    assert [given[given.index(word) :][:2] for word in options[::2]] == [options[:2], options[2:]]
    assert all(f'{name}="{value}"' in (ROOT / "demo" / "web.py").read_text() for name, value in OPTIONS.items())
    assert " ".join(options) in (ROOT / "docs" / "install.md").read_text()
