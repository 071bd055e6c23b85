"""Many browsers and scripts at once, in a process of their own: `python -m benchmarks.loading.visitors < WHAT`.

It says on a line of JSON what became of them: how many answers were errors, and how many sockets were closed.
"""

import asyncio
import json
import subprocess
import sys
from contextlib import suppress
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Self

import httpx
from websockets import Origin
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from benchmarks.observing.ear import TOPIC
from demo.visitor import Visitor

OPENING_AT_ONCE = 25  # a kernel keeps so many waiting for a server that is busy
OPEN_S, ANSWER_S, LONGEST_S = 60.0, 60.0, 600.0


@dataclass(frozen=True)
class Load:
    """What is asked of the web process. Each client asks for the paths one after the other, from one of its own."""

    url: str
    cookies: str
    paths: list[str]
    sockets: int
    clients: int
    requests: int  # of each client

    @classmethod
    def by(cls, visitor: Visitor, paths: list[str], *, sockets: int, clients: int, requests: int) -> Self:
        cookies = "; ".join(f"{cookie.name}={cookie.value}" for cookie in visitor.http.cookies.jar)
        return cls(visitor.url, cookies, paths, sockets, clients, requests)


@dataclass(frozen=True)
class Outcome:
    answers: int
    errors: int
    closed_sockets: int
    first_error: str = ""


def put(load: Load) -> Outcome:
    """What became of it. Its words are not on the command line: others read that, and it holds a session."""
    command = [sys.executable, "-m", "benchmarks.loading.visitors"]
    asked = json.dumps(asdict(load))
    ended = subprocess.run(command, input=asked, capture_output=True, text=True, timeout=LONGEST_S, check=False)
    if ended.returncode:
        raise RuntimeError(f"the visitors did not get through:\n{ended.stderr}")
    return Outcome(**json.loads(ended.stdout))


async def visit(load: Load) -> Outcome:
    """Open all sockets, then ask; they stay open until the last answer."""
    gate = asyncio.Semaphore(OPENING_AT_ONCE)
    opened = await asyncio.gather(*(_open(load, gate) for _ in range(load.sockets)))
    sockets = [socket for socket in opened if socket is not None]
    listening = [asyncio.create_task(_listen(socket)) for socket in sockets]
    said = await asyncio.gather(*(_ask(load, number) for number in range(load.clients)))
    errors = [error for client in said for error in client if error]
    closed = load.sockets - len(sockets) + sum(task.done() for task in listening)
    await asyncio.gather(*(socket.close() for socket in sockets))
    await asyncio.gather(*listening)
    return Outcome(sum(map(len, said)), len(errors), closed, next(iter(errors), ""))


async def _open(load: Load, gate: asyncio.Semaphore) -> ClientConnection | None:
    """A socket that was greeted; None: it was not let in."""
    address = load.url.replace("http", "ws", 1) + TOPIC
    headers = {"Cookie": load.cookies}
    async with gate:
        try:
            socket = await connect(
                address, additional_headers=headers, origin=Origin(load.url), open_timeout=OPEN_S, proxy=None
            )
            await asyncio.wait_for(socket.recv(), OPEN_S)
        except Exception as error:  # noqa: BLE001 - however it was refused, it is one socket less
            print(f"a socket did not open: {type(error).__name__}: {error}", file=sys.stderr)
            return None
        return socket


async def _listen(socket: ClientConnection) -> None:
    with suppress(ConnectionClosed):  # whoever closed it, it is counted: nothing listens there any more
        async for _ in socket:
            continue


async def _ask(load: Load, number: int) -> list[str]:
    """Of each answer what was wrong with it; an empty text: nothing."""
    paths = load.paths[number % len(load.paths) :] + load.paths[: number % len(load.paths)]
    async with httpx.AsyncClient(
        base_url=load.url, headers={"Cookie": load.cookies}, timeout=ANSWER_S, trust_env=False
    ) as client:
        asked = islice(paths * (load.requests // len(paths) + 1), load.requests)
        return [await _answer(client, path) for path in asked]


async def _answer(client: httpx.AsyncClient, path: str) -> str:
    try:
        answer = await client.get(path)
    except httpx.HTTPError as error:
        return f"{path}: {type(error).__name__}: {error}"
    return "" if answer.status_code == httpx.codes.OK else f"{path}: {answer.status_code}"


if __name__ == "__main__":
    json.dump(asdict(asyncio.run(visit(Load(**json.load(sys.stdin))))), sys.stdout)
