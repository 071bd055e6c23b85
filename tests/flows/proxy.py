"""A recorder between Quarterdeck and an API server: what was asked of it, and the faults that a network has.

It asks the API server with the credentials of a kubeconfig, in the name of a service account where it is given one. So
the flows need no hook in the product and no help of whatever serves the API.
"""

import asyncio
import json
import threading
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import parse_qs

import uvicorn

from demo.ports import LOOPBACK, free_port
from demo.visitor import wait_until
from tests.flows.asked import Asked, Held, Matches, Rule
from tests.flows.upstream import Upstream, left, pass_back, say

CONTEXT = "recorded"
NOT_OURS_TO_PASS = {"host", "authorization", "accept-encoding", "connection", "content-length"}
T = TypeVar("T")


class Proxy:
    """Serves plain HTTP on loopback, in a thread of its own."""

    def __init__(self, kubeconfig: Path, context: str, folder: Path, *, as_user: str = "") -> None:
        self.kubeconfig = folder / "kubeconfig-of-quarterdeck"
        self.as_user = as_user  # of whoever is impersonated; empty: nobody
        self.page_size = 0  # 0: as was asked
        self._upstream = Upstream(kubeconfig, context)
        self._port = free_port()
        self._log: list[Asked] = []
        self._rules: list[Rule] = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy", daemon=True)
        self._server: uvicorn.Server | None = None
        self._serving: asyncio.Task[None] | None = None

    def start(self) -> None:
        write_kubeconfig(self.kubeconfig, f"http://{LOOPBACK}:{self._port}")
        self._thread.start()
        self.accept()

    def stop(self) -> None:
        self.refuse()
        self._run(self._upstream.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(timeout=10)
        self._loop.close()

    def requests(self, since: int = 0) -> list[Asked]:
        """Return what was asked, in order, from a number on; the newest may have no answer yet."""
        return self._log[since:]

    @property
    def count(self) -> int:
        return len(self._log)

    def refuse(self) -> None:
        """Break every connection and refuse new ones, as when nothing listens there."""
        self._run(self._close())

    def accept(self) -> None:
        """Listen again, at the same address."""
        server = self._run(self._open())
        wait_until(lambda: server.started, what="the recorder", timeout_s=30, every_s=0.01)

    @contextmanager
    def gone(self) -> Iterator[None]:
        self.refuse()
        try:
            yield
        finally:
            self.accept()

    def drop(self) -> None:
        """Break every connection; new ones are welcome."""
        self.refuse()
        self.accept()

    @contextmanager
    def holding(self, matches: Matches, *, answer: bool = False) -> Iterator[Held]:
        """Keep the first request that matches, or its answer, until it is let go; at the end it is."""
        held = Held(answer, self._loop)
        with self._rule(Rule(matches, times=1, hold=held)):
            try:
                yield held
            finally:
                held.let_go()

    @contextmanager
    def answering(self, matches: Matches, code: int, body: Any, *, times: int | None = None) -> Iterator[Rule]:
        """Answer in the API server's place."""
        with self._rule(Rule(matches, times=times, code=code, body=json.dumps(body).encode() + b"\n")) as rule:
            yield rule

    @contextmanager
    def slow(self, matches: Matches, delay_s: float) -> Iterator[Rule]:
        with self._rule(Rule(matches, delay_s=delay_s)) as rule:
            yield rule

    @contextmanager
    def _rule(self, rule: Rule) -> Iterator[Rule]:
        self._rules.append(rule)
        try:
            yield rule
        finally:
            self._rules.remove(rule)

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(timeout=30)

    async def _open(self) -> uvicorn.Server:
        settings = uvicorn.Config(
            self._serve,
            interface="asgi3",
            host=LOOPBACK,
            port=self._port,
            lifespan="off",
            ws="none",
            access_log=False,
            log_level="error",
        )
        self._server = uvicorn.Server(settings)
        self._serving = self._loop.create_task(self._server.serve())
        return self._server

    async def _close(self) -> None:
        if self._server is None or self._serving is None:
            return
        self._server.should_exit = self._server.force_exit = True
        for connection in list(self._server.server_state.connections):
            connection.transport.abort()
        await self._serving
        self._server = self._serving = None

    async def _serve(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer one request; forget it when its caller leaves before it was passed on."""
        asked, headers = await self._read(scope, receive)
        answering = asyncio.create_task(self._answer(asked, headers, send))
        leaving = asyncio.create_task(left(receive))
        await asyncio.wait({answering, leaving}, return_when=asyncio.FIRST_COMPLETED)
        leaving.cancel()
        if not answering.done() and (asked.is_watch or not asked.is_forwarded):
            answering.cancel()
        with suppress(asyncio.CancelledError):
            await answering

    async def _read(self, scope: Any, receive: Any) -> tuple[Asked, dict[str, str]]:
        body, more = b"", True
        while more:
            message = await receive()
            body += message.get("body", b"")
            more = message.get("more_body", False)
        query = {name: values[-1] for name, values in parse_qs(scope["query_string"].decode()).items()}
        written = json.loads(body) if body else None
        asked = Asked(len(self._log), scope["method"], scope["raw_path"].decode(), query, written, datetime.now(UTC))
        self._log.append(asked)
        if self.page_size and "limit" in query:
            query["limit"] = str(self.page_size)
        passed = {name.decode(): value.decode() for name, value in scope["headers"]}
        return asked, {name: value for name, value in passed.items() if name not in NOT_OURS_TO_PASS}

    async def _answer(self, asked: Asked, headers: dict[str, str], send: Any) -> None:
        rule = next((rule for rule in self._rules if rule.takes(asked)), None)
        if rule and rule.delay_s:
            await asyncio.sleep(rule.delay_s)
        if rule and rule.hold and not rule.hold.is_answer:
            await rule.hold.keep(asked)
        if rule and rule.code:
            await say(send, rule.code, rule.body)
            self._note(asked, rule.code)
            return
        if self.as_user:
            headers["Impersonate-User"] = self.as_user
        asked.is_forwarded = True
        async with self._upstream.asking(asked, headers) as response:
            if rule and rule.hold:
                await response.aread()
                self._note(asked, response.status_code)
                await rule.hold.keep(asked)
            self._note(asked, response.status_code)
            await pass_back(response, send)

    def _note(self, asked: Asked, code: int) -> None:
        asked.code = asked.code or code
        asked.answered_at = asked.answered_at or datetime.now(UTC)


def write_kubeconfig(file: Path, server: str) -> None:
    """JSON is YAML. The token only makes clients content: the recorder has its own."""
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": CONTEXT, "cluster": {"server": server}}],
        "users": [{"name": CONTEXT, "user": {"token": "of-the-recorder"}}],
        "contexts": [{"name": CONTEXT, "context": {"cluster": CONTEXT, "user": CONTEXT}}],
        "current-context": CONTEXT,
    }
    file.touch(mode=0o600)
    file.write_text(json.dumps(document))
