"""Receivers that speak real HTTP and answer as they are told: late, twice, 429, 5xx, never."""

import json
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Answer:
    status: int = 200
    body: str = "{}"
    headers: Mapping[str, str] = field(default_factory=dict)
    after_s: float = 0.0
    is_cut: bool = False  # the connection ends without an answer


@dataclass
class Received:
    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Receiver:
    """Answers `answers` one after another, and the last one from then on."""

    def __init__(self) -> None:
        self.received: list[Received] = []
        self.answers: list[Answer] = [Answer()]
        self._lock = threading.Lock()

    def next(self, received: Received) -> Answer:
        with self._lock:
            self.received.append(received)
            return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]

    url = ""


@contextmanager
def a_receiver() -> Iterator[Receiver]:
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers.get("content-length", 0))
            answer = receiver.next(Received(self.path, dict(self.headers.items()), self.rfile.read(length)))
            time.sleep(answer.after_s)
            if answer.is_cut:
                self.connection.close()
                return
            body = answer.body.encode()
            self.send_response(answer.status)
            for name, value in {"content-length": str(len(body)), **answer.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    receiver.url = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield receiver
    finally:
        server.shutdown()
        server.server_close()
