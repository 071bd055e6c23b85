"""The ASGI end: reads a request, lets faults strike, asks the API, sends the answer, writes the log."""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from typing import Any

from starlette.applications import Starlette

from simulator.clock import micro_stamp
from simulator.faults.board import Board
from simulator.faults.error_500 import Error500
from simulator.faults.slow_api import SlowApi
from simulator.rbac import User
from simulator.refusals import Refused
from simulator.request_log import RequestLog
from simulator.wire.access import act_of
from simulator.wire.answers import Answer, of_refusal
from simulator.wire.api import Api
from simulator.wire.asks import Ask
from simulator.wire.paths import parse

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
WRITES = {"POST", "PUT", "PATCH", "DELETE"}
NOBODY = User("")


class Wire:
    def __init__(self, api: Api, control: Starlette, board: Board, log: RequestLog) -> None:
        self.api = api
        self.control = control
        self.board = board
        self.log = log

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"].startswith("/simulator"):
            await self.control(scope, receive, send)
        else:
            await self._serve(scope, receive, send)

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        began = time.perf_counter()
        at = micro_stamp(self.api.store.clock.now())
        ask = Ask(
            scope["method"],
            scope["path"],
            scope["query_string"].decode(),
            {name.decode(): value.decode("latin-1") for name, value in scope["headers"]},
            await _body(receive),
            NOBODY,
        )
        user, answer = await self._answer(ask)
        if answer.pieces is not None:
            self._note(ask, user, answer, at, began)
            await _stream(answer, answer.pieces, receive, send)
            return
        await _send(answer, send, with_body=ask.method != "HEAD")
        self._note(ask, user, answer, at, began)

    async def _answer(self, ask: Ask) -> tuple[User, Answer]:
        user = NOBODY
        try:
            await self._strike(ask)
            user = self.api.access.user_of(ask.headers, ask.path)
            asked = Ask(ask.method, ask.path, ask.query_string, ask.headers, ask.body, user, parse(ask.path))
            if asked.path.startswith(
                "/openapi"
            ):  # seconds of work the first time: not in the loop that feeds the watches
                return user, await asyncio.to_thread(self.api.answer, asked)
            return user, self.api.answer(asked)
        except Refused as refusal:
            return user, of_refusal(refusal)

    async def _strike(self, ask: Ask) -> None:
        """:raises Refused: when a fault says so."""
        for slow in self.board.active(SlowApi):
            if slow.path in ask.path:
                await asyncio.sleep(slow.delay_s)
        for error in self.board.active(Error500):
            if error.path in ask.path and random.random() < error.share:
                raise _broken(error.code)

    def _note(self, ask: Ask, user: User, answer: Answer, at: str, began: float) -> None:
        verb = act_of(ask.method, ask.path, parse(ask.path), is_watch=ask.flag("watch")).verb
        self.log.write(
            at=at,
            verb=verb,
            method=ask.method,
            path=ask.path,
            query=ask.query_string,
            user_agent=ask.headers.get("user-agent", ""),
            user=user.name,
            code=answer.status,
            took_ms=round((time.perf_counter() - began) * 1000, 3),
            body=_logged_body(ask),
        )


def _broken(code: int) -> Refused:
    if code == 429:
        return Refused(429, "TooManyRequests", "too many requests, please try again later", retry_after_s=1)
    reason = {500: "InternalError", 503: "ServiceUnavailable", 504: "Timeout"}.get(code, "")
    return Refused(code, reason, "an error on the server has prevented the request from succeeding")


def _logged_body(ask: Ask) -> Any:
    if ask.method not in WRITES or not ask.body:
        return None
    try:
        return ask.json()
    except Refused:
        return ask.body.decode(errors="replace")


async def _body(receive: Receive) -> bytes:
    pieces = []
    while True:
        message = await receive()
        pieces.append(message.get("body", b""))
        if not message.get("more_body"):
            return b"".join(pieces)


async def _send(answer: Answer, send: Send, *, with_body: bool) -> None:
    await send({"type": "http.response.start", "status": answer.status, "headers": answer.raw_headers()})
    await send({"type": "http.response.body", "body": answer.body if with_body else b""})


async def _stream(answer: Answer, pieces: AsyncIterator[bytes], receive: Receive, send: Send) -> None:
    """Pieces until they end or the client leaves."""
    sending = asyncio.create_task(_send_pieces(answer, pieces, send))
    leaving = asyncio.create_task(_left(receive))
    _, unfinished = await asyncio.wait({sending, leaving}, return_when=asyncio.FIRST_COMPLETED)
    for task in unfinished:
        task.cancel()
    await asyncio.gather(sending, leaving, return_exceptions=True)


async def _send_pieces(answer: Answer, pieces: AsyncIterator[bytes], send: Send) -> None:
    opening = {"type": "http.response.start", "status": answer.status, "headers": answer.raw_headers()}
    if not answer.waits:
        await send(opening)
    async for piece in pieces:
        if answer.waits:
            answer.waits = False
            await send(opening)
        await send({"type": "http.response.body", "body": piece, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        continue
