"""A receiver of syslog over TLS: it reads until the sender ends, late, in part, or not at all."""

import asyncio
import re
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass
class SyslogReceiver:
    port: int = 0
    streams: list[bytes] = field(default_factory=list)  # one for each connection that ended well
    late_s: float = 0.0
    is_cut: bool = False  # the next connection ends after its first bytes, with a reset

    @property
    def messages(self) -> list[str]:
        """The messages of all streams, as RFC 5425 frames them."""
        found = []
        for stream in self.streams:
            while stream:
                length = re.match(rb"(\d+) ", stream)
                assert length is not None
                end = length.end() + int(length[1])
                found.append(stream[length.end() : end].decode("ascii"))
                stream = stream[end:]
        return found

    def wait_for(self, number: int) -> list[str]:
        """The messages, once there are so many: the sender does not wait until they are kept here."""
        until = time.monotonic() + 5
        while len(self.messages) < number and time.monotonic() < until:
            time.sleep(0.02)
        return self.messages

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.is_cut:
            self.is_cut = False
            writer.transport.abort()
            return
        if self.late_s:
            writer.transport.pause_reading()  # type: ignore[attr-defined]
            await asyncio.sleep(self.late_s)
            writer.transport.resume_reading()  # type: ignore[attr-defined]
        content = await reader.read()
        self.streams.append(content)
        writer.close()


@contextmanager
def a_syslog_receiver(context: ssl.SSLContext) -> Iterator[SyslogReceiver]:
    receiver, ready, loop = SyslogReceiver(), threading.Event(), asyncio.new_event_loop()

    async def listen() -> None:
        server = await asyncio.start_server(receiver.serve, "127.0.0.1", 0, ssl=context)
        receiver.port = server.sockets[0].getsockname()[1]
        ready.set()

    def run() -> None:
        asyncio.set_event_loop(loop)
        loop.create_task(listen())
        loop.run_forever()

    def end() -> None:
        for task in asyncio.all_tasks(loop):
            task.cancel()
        loop.call_soon(loop.stop)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    ready.wait(5)
    try:
        yield receiver
    finally:
        loop.call_soon_threadsafe(end)
        thread.join(5)
