"""An HTTP server that answers a query as a test says, on a port of its own."""

import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

Write = Callable[[BaseHTTPRequestHandler], None]


class Asked(ThreadingHTTPServer):
    daemon_threads = True
    answer: Write
    headers_seen: list[dict[str, str]]
    queries: list[str]

    def handle_error(self, request: object, client_address: object) -> None:
        """Whoever asked has hung up: that is what some tests are about."""


class Handler(BaseHTTPRequestHandler):
    server: Asked

    def do_POST(self) -> None:
        self.server.headers_seen.append(dict(self.headers))
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.queries.append(body.decode())
        self.server.answer(self)

    def log_message(self, *_: object) -> None:
        """Nobody reads it."""


@contextmanager
def a_server(answer: Write, *, trusted: ssl.SSLContext | None = None) -> Iterator[tuple[str, Asked]]:
    """`trusted`: with the certificate that it shows; None: it speaks no TLS."""
    server = Asked(("127.0.0.1", 0), Handler)
    if trusted is not None:
        server.socket = trusted.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    server.answer, server.headers_seen, server.queries = answer, [], []
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield f"{'https' if trusted else 'http'}://127.0.0.1:{server.server_address[1]}", server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def saying(body: bytes, status: int = 200, **headers: str) -> Write:
    def answer(to: BaseHTTPRequestHandler) -> None:
        to.send_response(status)
        for name, value in headers.items():
            to.send_header(name, value)
        to.send_header("Content-Length", str(len(body)))
        to.end_headers()
        to.wfile.write(body)

    return answer


def a_closed_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
