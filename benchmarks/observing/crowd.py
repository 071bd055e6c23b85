"""Many browsers at once, in a process of their own: `python -m benchmarks.observing.crowd URL COOKIE ORIGIN NUMBER`."""

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from websockets import Origin
from websockets.asyncio.client import connect

from benchmarks.observing.ear import TOPIC
from demo.visitor import Visitor


@contextmanager
def crowd(visitor: Visitor, number: int) -> Iterator[None]:
    """So many sockets of one person, all open, until the end."""
    cookies = "; ".join(f"{cookie.name}={cookie.value}" for cookie in visitor.http.cookies.jar)
    address = visitor.url.replace("http", "ws", 1) + TOPIC
    command = [sys.executable, "-m", "benchmarks.observing.crowd", address, cookies, visitor.url, str(number)]
    running = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        if not running.stdout or running.stdout.readline().strip() != "open":
            raise RuntimeError("the crowd did not get in")
        yield
        if running.poll() is not None:
            raise RuntimeError("the crowd was thrown out")
    finally:
        running.terminate()
        running.wait(timeout=10)


async def listen(address: str, cookies: str, origin: str, number: int) -> None:
    is_open = asyncio.Barrier(number + 1)
    sockets = [asyncio.create_task(_one(address, cookies, origin, is_open)) for _ in range(number)]
    await asyncio.wait_for(is_open.wait(), 60)
    print("open", flush=True)
    await asyncio.gather(*sockets)


async def _one(address: str, cookies: str, origin: str, is_open: asyncio.Barrier) -> None:
    headers = {"Cookie": cookies}
    async with connect(address, additional_headers=headers, origin=Origin(origin), proxy=None) as socket:
        await socket.recv()  # the hello: whoever has it has joined
        await is_open.wait()
        async for _ in socket:
            continue
    raise RuntimeError("a socket was closed")


if __name__ == "__main__":
    asyncio.run(listen(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])))
