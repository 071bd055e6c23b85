"""An API server that is as bad as a test wants it: it sends any bytes, hangs, trickles, forgets, and is rebuilt.

It knows nothing of Kubernetes but lists, watches and the UID of kube-system; twenty of them are one thread.
"""

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.patience import PATIENCE_S

KUBE_SYSTEM = "/api/v1/namespaces/kube-system"
NODES, PODS, DRIVERS = "/api/v1/nodes", "/api/v1/pods", "/apis/nvidia.com/v1alpha1/nvidiadrivers"
EXPIRED = {"kind": "Status", "code": 410, "reason": "Expired", "message": "The provided continue parameter is too old."}


def a_refusal(code: int, reason: str, message: str, **details: Any) -> tuple[int, bytes]:
    status = {"kind": "Status", "code": code, "reason": reason, "message": message, "details": details}
    return code, json.dumps(status).encode()


FORBIDDEN = a_refusal(403, "Forbidden", 'pods is forbidden: User "quarterdeck" cannot list resource "pods"')
UNAUTHORIZED = a_refusal(401, "Unauthorized", "Unauthorized")
ABSENT = a_refusal(404, "NotFound", "the server could not find the requested resource")
TOO_LARGE = a_refusal(
    504,
    "Timeout",
    "Timeout: Too large resource version: 900, current: 100",
    causes=[{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
    retryAfterSeconds=1,
)


@dataclass
class LightServer:
    """Change its fields at any time, from any thread."""

    uid: str = "uid-of-light"
    version: int = 100
    page_size: int = 0  # 0: as was asked
    bookmark_every_s: float = 0.2
    token: str = ""  # empty: any
    clock_ahead_s: float = 0.0
    hangs: bool = False  # accepts, and never answers
    objects: dict[str, list[bytes]] = field(default_factory=dict)
    refusals: dict[str, tuple[int, bytes]] = field(default_factory=dict)  # of lists and watches
    watch_refusals: dict[str, tuple[int, bytes]] = field(default_factory=dict)
    delays_s: dict[str, float] = field(default_factory=dict)  # of lists
    silent: set[str] = field(default_factory=set)  # watches that stand, and new ones, say nothing at all
    trickling: set[str] = field(default_factory=set)  # watches that send a byte now and then, and never a line
    expiring: dict[str, int] = field(default_factory=dict)  # how many second pages are forgotten
    asked: list[str] = field(default_factory=list)
    port: int = 0
    _watches: list[tuple[str, asyncio.StreamWriter]] = field(default_factory=list)
    _loop: asyncio.AbstractEventLoop | None = None

    def send(self, path: str, *lines: bytes) -> None:
        """Into every watch of this kind that stands."""
        self._call(self._send, path, lines)

    def drop(self) -> None:
        """End every watch, as a load balancer does."""
        self._call(self._drop)

    def changes(self, path: str, document: dict[str, Any], *, what: str = "MODIFIED") -> None:
        self.version += 1
        document["metadata"]["resourceVersion"] = str(self.version)
        self.send(path, json.dumps({"type": what, "object": document}).encode())

    def watches(self, path: str) -> int:
        return sum(one == path for one, _ in self._watches)

    def _call(self, act: Any, *args: Any) -> None:
        done = threading.Event()

        def play() -> None:
            act(*args)
            done.set()

        assert self._loop
        self._loop.call_soon_threadsafe(play)
        assert done.wait(PATIENCE_S)

    def _send(self, path: str, lines: tuple[bytes, ...]) -> None:
        for one, writer in self._watches:
            if one == path:
                for line in lines:
                    writer.write(chunk(line + b"\n"))

    def _drop(self) -> None:
        for _, writer in self._watches:
            writer.close()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                target = head.split(b" ", 2)[1].decode()
                self.asked.append(target)
                if self.hangs:
                    await asyncio.sleep(3600)
                if self.token and f"authorization: bearer {self.token}" not in head.decode().lower():
                    await self._say(writer, *UNAUTHORIZED)
                    continue
                await self._answer(urlsplit(target).path, parse_qs(urlsplit(target).query), writer)
        except (asyncio.IncompleteReadError, asyncio.CancelledError, ConnectionError):
            return  # whoever asked has gone, or the test is over
        finally:
            writer.close()

    async def _answer(self, path: str, query: dict[str, list[str]], writer: asyncio.StreamWriter) -> None:
        if path == KUBE_SYSTEM:
            await self._say(writer, 200, b'{"metadata":{"name":"kube-system","uid":"%s"}}' % self.uid.encode())
        elif path in self.refusals or path.startswith("/apis/resource.k8s.io"):
            await self._say(writer, *self.refusals.get(path, ABSENT))
        elif "watch" in query:
            await self._watch(path, writer)
        else:
            await asyncio.sleep(self.delays_s.get(path, 0))
            await self._list(path, query, writer)

    async def _list(self, path: str, query: dict[str, list[str]], writer: asyncio.StreamWriter) -> None:
        begin = int(query.get("continue", ["0"])[0])
        if begin and self.expiring.get(path, 0):
            self.expiring[path] -= 1
            await self._say(writer, 410, json.dumps(EXPIRED | {"metadata": {"continue": "inconsistent"}}).encode())
            return
        items = self.objects.get(path, [])
        end = begin + (self.page_size or int(query.get("limit", ["500"])[0]))
        more = str(end) if end < len(items) else ""
        meta = json.dumps({"resourceVersion": str(self.version), "continue": more}).encode()
        await self._say(writer, 200, b'{"metadata":' + meta + b',"items":[' + b",".join(items[begin:end]) + b"]}")

    async def _watch(self, path: str, writer: asyncio.StreamWriter) -> None:
        if path in self.silent:
            await asyncio.sleep(3600)
        if path in self.watch_refusals:
            await self._say(writer, *self.watch_refusals[path])
            return
        writer.write(self._head(200) + b"Transfer-Encoding: chunked\r\n\r\n")
        self._watches.append((path, writer))
        try:
            while not writer.is_closing():
                if path in self.trickling:
                    writer.write(chunk(b" "))
                elif path not in self.silent:
                    mark = {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": str(self.version)}}}
                    writer.write(chunk(json.dumps(mark).encode() + b"\n"))
                await writer.drain()
                await asyncio.sleep(self.bookmark_every_s)
        finally:
            self._watches.remove((path, writer))
        raise ConnectionError

    async def _say(self, writer: asyncio.StreamWriter, code: int, body: bytes) -> None:
        writer.write(self._head(code) + b"Content-Length: %d\r\n\r\n" % len(body) + body)
        await writer.drain()

    def _head(self, code: int) -> bytes:
        date = format_datetime(datetime.now(UTC) + timedelta(seconds=self.clock_ahead_s), usegmt=True)
        return f"HTTP/1.1 {code} So\r\nContent-Type: application/json\r\nDate: {date}\r\n".encode()


def chunk(piece: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(piece), piece)


@contextmanager
def light_servers(*servers: LightServer) -> Iterator[None]:
    """All of them, on ports of their own, until the end."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="light servers", daemon=True)
    thread.start()

    async def start(server: LightServer) -> None:
        listening = await asyncio.start_server(server.serve, "127.0.0.1", server.port, limit=2**20)
        server.port = listening.sockets[0].getsockname()[1]
        server._loop = loop

    async def end() -> None:
        mine = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in mine:
            task.cancel()
        await asyncio.gather(*mine, return_exceptions=True)

    for server in servers:
        asyncio.run_coroutine_threadsafe(start(server), loop).result(5)
    try:
        yield
    finally:
        asyncio.run_coroutine_threadsafe(end(), loop).result(5)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(5)
        loop.close()


def a_kubeconfig(folder: Path, server: LightServer, name: str = "light") -> str:
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": {"server": f"http://127.0.0.1:{server.port}"}}],
        "users": [{"name": name, "user": {"token": "t"}}],
        "contexts": [{"name": "light", "context": {"cluster": name, "user": name}}],
    }
    file = folder / f"kubeconfig-{name}"
    file.write_text(json.dumps(document))
    return str(file)
